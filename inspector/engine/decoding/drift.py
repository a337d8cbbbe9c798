"""The right answer given (teacher forcing) against what the model says by itself: how far both part, step by step.

A model that was only ever given right symbols meets, once it has said a wrong one, states that training never showed it
(exposure bias; Bengio et al. 2015, Ranzato et al. 2016). Where both say the same, states are the same, and all is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.decoding.channels import PLACE
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import ANSWER_DOMAIN, Channel

SOURCE = "Bengio et al. 2015; Ranzato et al. 2016"


def write_drift(forced: Trace, free: Trace, right: Sequence[int], said: Sequence[int], emit: Emitter) -> None:
    """Write the drift of outputs and states over the steps that both answers have, into the frame of the free run.

    forced, free: the run in which the model was given `right`, and the one in which it was given what it says (`said`).
    """
    steps = min(len(right), len(said))
    if not steps or forced.logits is None or free.logits is None:
        return
    output = divergence(forced.logits[0, :steps], free.logits[0, :steps])
    emit.array(_over_steps("drift/output", steps, "nat", "drift of the output", "KL(p_forced ‖ p_free)"), output)
    wrong = torch.tensor([a != b for a, b in zip(right, said, strict=False)]).cumsum(0)
    title = "wrong tokens so far"
    said_wrong = _over_steps(
        "drift/wrong", steps, "1", title, "tokens so far that differ from the right answer", "int64"
    )
    emit.array(said_wrong, wrong)
    for one, other in _pairs(forced, free):
        about = _over_steps(
            "drift/state", steps, "1", "drift of the state", "‖s_free − s_forced‖₂ / ‖s_forced‖₂ after each step",
            place=one.place, module=one.module,
        )  # fmt: skip
        emit.array(about, distance(one.states[1 : steps + 1, 0], other.states[1 : steps + 1, 0]))


def divergence(forced: Tensor, free: Tensor) -> Tensor:
    """(t,) KL(p_forced ‖ p_free) in nats of logits (t, v); 0 · ln 0 is 0."""
    p, q = (torch.log_softmax(logits.double(), dim=-1) for logits in (forced, free))
    terms = torch.where(p > -torch.inf, p.exp() * (p - q), 0.0)
    return terms.sum(-1).clamp(min=0.0)  # rounding makes equal ones slightly negative


def distance(forced: Tensor, free: Tensor) -> Tensor:
    """(t,) relative Euclidean distance of states (t, s); NaN where the forced state is 0."""
    forced, free = forced.detach().double().cpu(), free.detach().double().cpu()
    size = torch.linalg.vector_norm(forced, dim=-1)
    far: Tensor = torch.linalg.vector_norm(free - forced, dim=-1)
    relative: Tensor = far / size.masked_fill(size == 0, torch.nan)
    return relative


def _pairs(forced: Trace, free: Trace) -> list[tuple[Recurrence, Recurrence]]:
    """Recurrences over the answer's steps that both runs have."""
    others = {one.place: one for one in free.recurrences}
    return [
        (one, others[one.place])
        for one in forced.recurrences
        if one.domain == ANSWER_DOMAIN and not one.reverse and one.place in others
        and others[one.place].states.shape[2] == one.states.shape[2]
    ]  # fmt: skip


def _over_steps(
    signal: str,
    steps: int,
    unit: str,
    title: str,
    formula: str,
    dtype: str = "float64",
    place: str = PLACE,
    module: str = "",
) -> Channel:
    return Channel(
        name=f"{place}:{signal}", kind=PLACE, dims=("step",), shape=(steps,), dtype=dtype, unit=unit, title=title,
        formula=formula, source=SOURCE, domains={"step": ANSWER_DOMAIN}, compare="separate", module=module,
    )  # fmt: skip
