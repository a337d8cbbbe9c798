"""The logit lens: what the model would predict if it read its scores off an earlier layer."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.attention.residual_stream import Readout, Stream, no_stack, reading, streams
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import ATTENTION

NAME = "residual/lens"
SOURCE = "nostalgebraist 2020, interpreting GPT: the logit lens; biased for early layers, see Belrose et al. 2023"
KL = Describe(
    kind="residual", unit="nat", title="divergence of the lens from the prediction", source=SOURCE,
    formula="KL(p_t ‖ p_lt), p_lt = softmax of the scores that the model's own final norm and head read off layer l",
)  # fmt: skip
RANK = Describe(
    kind="residual", title="rank of the prediction in the lens", source=SOURCE, scale="log", compare="separate",
    formula="1 + how many classes have a higher score at layer l than the class that the model predicts",
)  # fmt: skip
TOKEN = Describe(
    kind="residual", title="most probable class in the lens", source=SOURCE, compare="separate",
    formula="argmax of the scores read off layer l",
)  # fmt: skip
PROBABILITY = Describe(
    kind="residual", title="probability of the prediction in the lens", source=SOURCE, limits=(0.0, 1.0),
    formula="p_lt of the class that the model predicts",
)  # fmt: skip


@QUANTITIES.register(NAME)
@per_run(
    summary="logit lens: the scores that the model's final norm and head read off every layer", order=61,
    default=False, needs=(ATTENTION,), cost="one more call, and the head for every layer",
    work=lambda run: run.call * 6, limit=no_stack,
)  # fmt: skip
def lens(trace: Trace, emit: Emitter) -> None:
    """Write `STACK:residual/lens_divergence`, `…_rank`, `…_token` and `…_probability` (layer, step) of the stack off
    which the scores are read. Refused where final norm and head are not found as modules, or do not give the scores."""
    if not trace.attentions:
        return
    try:
        output, found = streams(trace)
        stream, read = reading(trace, output, found)
    except Unsupported as reason:
        emit.refuse(f"layers:{NAME}", str(reason))
        return
    with torch.no_grad():
        _write(trace, emit, stream, read)


def _write(trace: Trace, emit: Emitter, stream: Stream, read: Readout) -> None:
    rows = [stream.of_sample(read.scores(value.detach())).double() for value in stream.values]
    final = rows[-1].log_softmax(-1)
    predicted = final.argmax(-1, keepdim=True)
    tables: list[list[Tensor]] = [[], [], [], []]
    for row in rows:
        own = row.log_softmax(-1)
        tables[0].append((final.exp() * (final - own)).sum(-1).clamp_min(0.0))
        tables[1].append(1 + (row > row.gather(-1, predicted)).sum(-1))
        tables[2].append(row.argmax(-1))
        tables[3].append(own.gather(-1, predicted)[:, 0].exp())
    domain = trace.subject.classes(final.shape[1])[0]
    method = f"exact; read off by {' → '.join((*read.names, *read.after.names))}"
    for signal, about, table in zip(
        ("divergence", "rank", "token", "probability"), (KL, RANK, TOKEN, PROBABILITY), tables, strict=True
    ):
        values = torch.stack(table).cpu()
        whole = not values.is_floating_point()
        channel = about.channel(
            f"{stream.name}:{NAME}_{signal}", ("layer", "step"), tuple(values.shape), "int32" if whole else "float64",
            labels={"layer": stream.names}, domains={"step": stream.domain}, method=method,
            value_domain=domain if signal == "token" else "",
        )  # fmt: skip
        emit.array(channel, values.to(torch.int32) if whole else values)
