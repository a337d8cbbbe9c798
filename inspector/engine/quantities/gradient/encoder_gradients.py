"""From each step of the answer to each state of the encoder: ‖∂ℓ_t/∂h_s‖, beside the alignment."""

from __future__ import annotations

import torch

from inspector.engine.analyses.encoder_gradients import NO_ANSWER, answer_gradients
from inspector.engine.analyses.input_gradients import MOST
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN, LOSS_UNIT, Option
from inspector.records.catalogue import LOSS, RECURRENCE

NAME = "gradient/from_answer"
ABOUT = Describe(
    kind="attention_map", unit=LOSS_UNIT, title="gradient from the answer to the encoder", scale="log", compare="ratio",
    formula="‖∂ℓ_t/∂h_s‖₂, ℓ_t the loss of step t of the answer, h_s the encoder's state after step s of the question",
    source="Bahdanau, Cho & Bengio 2015; Pascanu, Mikolov & Bengio 2013",
)  # fmt: skip
METHOD = "exact; {} evenly spaced losses of {}, one backward pass each to the encoder and back through its states"


@QUANTITIES.register(NAME)
@per_run(
    summary="gradients from each step of the answer to each state of the encoder", order=81, default=False,
    needs=(RECURRENCE, LOSS), cost="a backward pass for each of up to 64 losses",
    work=lambda run: run.call * (2 * min(MOST, max(1, run.steps)) + 2),
    options=(Option(name="losses", type="int", default=MOST, low=2, high=4096, help="Most losses that are taken."),),
)  # fmt: skip
def from_answer(trace: Trace, emit: Emitter, losses: int = MOST) -> None:
    """Write `PLACE:gradient/from_answer` (query, key) of the last layer of every recurrent module that runs over other
    steps than the loss: query, the step of the answer; key, the encoder's. Rows that were left out have no page."""
    others = [one for one in trace.recurrences if one.domain != ANSWER_DOMAIN and one.length(trace.look_at)]
    if trace.loss is None or not others:
        return
    if trace.answer is None:
        emit.refuse(f"{others[0].place}:{NAME}", NO_ANSWER.format(others[0].place))
        return
    try:
        known = answer_gradients(trace, losses)
    except Unsupported as reason:
        emit.refuse(f"{others[0].place}:{NAME}", str(reason))
        return
    for recurrence in others:
        name = f"{recurrence.place}:{NAME}"
        try:
            rows = known.at(recurrence, emit)
        except Unsupported as reason:
            emit.refuse(name, str(reason))
            continue
        count = trace.answer.length(trace.look_at)
        channel = ABOUT.channel(
            name, ("query", "key"), (count, rows.shape[1]), "float64", module=recurrence.module,
            domains={"query": ANSWER_DOMAIN, "key": recurrence.domain}, method=METHOD.format(len(rows), count),
        )  # fmt: skip
        emit.channel(channel)
        for row, step in enumerate(known.steps):
            emit.page(name, (step, 0), torch.as_tensor(rows[row : row + 1]))
