"""How far finite masks lie below the scores that are allowed: whether a mask of −10⁴ really masks."""

from __future__ import annotations

import math

import torch

from inspector.engine.attention.map_pages import method
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, Quantity
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Log
from inspector.records.catalogue import ATTENTION

DESCRIBE = Describe(
    kind="attention_statistic", title="least allowed score minus mask",
    formula="min over allowed k of s_qk − max over masked k of s_qk, of masks that are finite numbers",
    source="a masked key keeps at least e^−margin times the weight of the least allowed one", scale="diverging",
)  # fmt: skip
LEAKS = (
    "{}: a finite mask is only {:.3g} below the least allowed score, so masked keys get up to {:.2g} times the weight "
    "of the least key that is allowed; use −∞, or a larger number."
)
ROWS_ALL_MASKED = "attention/rows_all_masked"
ALL_MASKED = (
    "{}: every key is masked by a finite number in {} of {} attention rows, so the softmax divides the weight among "
    "keys that are masked. Is the mask inverted?"
)


def run(trace: Trace, emit: Emitter) -> None:
    """M[a, q] = least allowed score − largest masked score, (head, query), where finite masks were applied; NaN for
    rows without a masked key, −∞ for those of which every key is masked, which are counted. A margin below the
    precision of the weights is a mask that leaks, which the log says."""
    for attention in trace.attentions:
        name, reason = f"{attention.place}:attention/mask_margin", refusal(attention)
        if reason is not None:
            emit.refuse(name, reason)
            continue
        margins = margins_of(attention, trace.look_at)
        if margins is None:
            continue
        channel = DESCRIBE.channel(
            name, ("head", "query"), tuple(margins.shape), "float64", module=attention.module,
            domains={"query": attention.queries_from}, method=method(attention, "exact"),
        )  # fmt: skip
        emit.array(channel, margins.double())
        if all_masked := int((margins == -torch.inf).sum()):
            emit.scalar(f"{attention.place}:{ROWS_ALL_MASKED}", all_masked)
            emit.sink.write(Log(ALL_MASKED.format(attention.place, all_masked, margins.numel()), "warning", "engine"))
        known = margins[margins.isfinite()]
        if not len(known):
            continue
        least = float(known.min())
        emit.scalar(name, least)
        if least < -math.log(torch.finfo(dtype_of(attention)).eps):
            emit.sink.write(
                Log(LEAKS.format(attention.place, least, math.exp(min(-least, 700.0))), "warning", "engine")
            )


def margins_of(attention: Attention, sample: int) -> torch.Tensor | None:
    """(a, q) the margins; None where no finite mask was applied."""
    if attention.margins is not None:
        return attention.margins[0]
    if attention.finite_mask is None or attention.weights is not None:
        return None
    return Rows(attention, sample).margins(attention.finite_mask)


def dtype_of(attention: Attention) -> torch.dtype:
    """The type of the weights."""
    return attention.query.dtype if attention.weights is None else attention.weights.dtype


QUANTITIES.register("attention/mask_margin")(
    Quantity(
        summary="least allowed score minus the mask, where masks are finite numbers", order=32, default=True,
        function=run, run=run, needs=(ATTENTION,),
    )
)  # fmt: skip
