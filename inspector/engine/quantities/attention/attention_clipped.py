"""What clipping the scores before the softmax would change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.head_maps import write_heads
from inspector.engine.attention.rows import FORBIDDEN, Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Log, Option
from inspector.records.catalogue import ATTENTION

NAME = "attention/clipped"
STATISTICS = ("largest score", "share beyond", "weight moved", "weight moved at most")
HOW: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "clamp": lambda scores, at, _largest: scores.clamp(-at, at),
    "tanh": lambda scores, at, _largest: at * torch.tanh(scores / at),
    "scale": lambda scores, at, largest: scores * min(1.0, at / largest) if largest > 0 else scores,
}
ABOUT = Describe(
    kind="attention_statistic", title="clipped scores",
    formula="share beyond: of allowed pairs with |s| above the limit; weight moved: ½ Σ_k |A_qk − A'_qk|, mean and "
    "largest over queries, A' = softmax of the clipped scores",
    source="tanh: Gemma 2 (2024); scale: QK-clip of the head's scores, Kimi K2 (2025)",
    method="exact",
)  # fmt: skip
LOST = (
    "Weights of {} are 0 in its precision ({}) where no mask is: how low their scores are is not known, nor, of their "
    "heads, what clipping changes. It is with scaled_dot_product_attention, or with weights in a wider type."
)
UNKNOWN = "The scores of {} are not known: its weights do not come from a softmax that was seen."


@QUANTITIES.register(NAME)
@per_run(
    summary="what clipping the scores before the softmax at a value would change, by head", order=60, default=False,
    needs=(ATTENTION,), cost="a pass over the maps", work=lambda run: run.call,
    options=(
        Option(name="at", type="float", default=50.0, low=1e-3, help="The limit of a score."),
        Option(
            name="how", type="choice", default="clamp", choices=("clamp", "tanh", "scale"),
            help="Clamp to ±limit; limit·tanh(s/limit); or all scores of a head scaled so that the largest is it.",
        ),
    ),
)  # fmt: skip
def clipped(trace: Trace, emit: Emitter, at: float = 50.0, how: str = "clamp") -> None:
    """Write `PLACE:attention/clipped` (head, statistic): the largest score, the share of allowed pairs whose |score|
    is above the limit, and the weight that clipping would move to other keys, on average and at most over queries.

    Of a model that computes its weights itself the scores are ln A + the largest score of the row − ln max A, and
    entries of its softmax that are no keys (a sink) stay as they are. Where A has become 0 scores are so low that a
    clamp brings them to −limit, or else what clipping changes is not known: NaN, with the reason.
    """
    for attention in trace.attentions:
        reason = refusal(attention)
        if reason is None and attention.weights is not None and attention.highest is None:
            reason = UNKNOWN.format(attention.place)
        if reason is not None:
            emit.refuse(f"{attention.place}:{NAME}", reason)
            continue
        _write(trace, emit, attention, at, how)


def _write(trace: Trace, emit: Emitter, attention: Attention, at: float, how: str) -> None:
    about = replace(ABOUT, title=f"scores clipped at {at:g} ({how})")
    values, unknown = changes(attention, trace.look_at, at, how), lost(attention, trace.look_at, at, how)
    if bool(unknown.any()):
        assert attention.weights is not None
        values[1:, unknown] = math.nan
        said = LOST.format(attention.place, str(attention.weights.dtype).removeprefix("torch."))
        about = replace(about, method=f"{about.method}. {said}")
        emit.sink.write(Log(said, "warning", "engine"))
    write_heads(emit, attention, NAME, about, values, STATISTICS)


def lost(attention: Attention, sample: int, at: float, how: str) -> Tensor:
    """(a,) whether weights are 0 where no mask is, and their scores perhaps within what clipping leaves as it is."""
    rows = Rows(attention, sample)
    found = torch.zeros(rows.heads, dtype=torch.bool)
    if attention.highest is None or attention.weights is None:
        return found
    depth = math.log(torch.finfo(attention.weights.dtype).tiny)
    for heads, q0, q1 in rows.blocks():
        block = rows.block(q0, q1, heads)
        allowed = rows.allowed(q0, q1, heads)[..., : block.weights.shape[2]].expand_as(block.weights)
        zero = (allowed & (block.weights == 0)).any(-1)
        least = attention.highest[0, heads, q0:q1].double() + depth
        found[heads] |= (zero & ((least > -at) | (how != "clamp"))).any(-1).cpu()
    return found


def changes(attention: Attention, sample: int, at: float, how: str) -> Tensor:
    """(statistic, head), as the quantity says."""
    rows = Rows(attention, sample)
    largest = torch.full((rows.heads,), -torch.inf, dtype=torch.float64)
    for heads, q0, q1 in rows.blocks():
        scores, allowed, _ = _scores(attention, rows, heads, q0, q1)
        top = scores.masked_fill(~allowed, -torch.inf).amax((1, 2)).cpu()
        largest[heads] = torch.maximum(largest[heads], top)
    beyond, pairs, moved, most, filled = (torch.zeros(rows.heads, dtype=torch.float64) for _ in range(5))
    for heads, q0, q1 in rows.blocks():
        scores, allowed, rest = _scores(attention, rows, heads, q0, q1)
        size = scores.abs().nan_to_num(nan=0.0)
        beyond[heads] += (allowed & (size > at)).sum((1, 2)).cpu()
        pairs[heads] += allowed.sum((1, 2)).cpu()
        after = torch.stack([HOW[how](one, at, float(top)) for one, top in zip(scores, largest[heads], strict=True)])
        change = (_softmax(scores, allowed, rest) - _softmax(after, allowed, rest)).abs().sum(-1).cpu() / 2
        moved[heads] += change.sum(1)
        filled[heads] += allowed.any(-1).sum(1).cpu()
        most[heads] = torch.maximum(most[heads], change.amax(1))
    return torch.stack([largest, beyond / pairs, moved / filled, most])


def _scores(attention: Attention, rows: Rows, heads: slice, q0: int, q1: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """((a, q, k') scores in float64, (a, q, k') which keys are allowed, (a, q, 1) ln Σ e^s of those entries of
    the softmax that are no keys, as a sink; None where there are none)."""
    block = rows.block(q0, q1, heads)
    allowed = rows.allowed(q0, q1, heads)[..., : block.weights.shape[2]].expand_as(block.weights)
    if block.scores is not None:
        return block.scores.double(), allowed & (block.scores > FORBIDDEN / 2), None
    assert attention.highest is not None
    weights = block.weights.double()
    top = attention.highest[0, heads, q0:q1, None].double()
    total = top - weights.amax(-1, keepdim=True).log()
    rest = (1 - weights.sum(-1, keepdim=True)).clamp(min=0).log() + total if attention.memories else None
    scores = weights.log() + total
    return scores, allowed & ~scores.isnan(), rest


def _softmax(scores: Tensor, allowed: Tensor, rest: Tensor | None) -> Tensor:
    """(a, q, k) 0 where masked, and in rows without a key."""
    known = scores.masked_fill(~allowed, -torch.inf)
    whole = known if rest is None else torch.cat((known, rest), -1)
    return whole.softmax(-1)[..., : known.shape[-1]].nan_to_num(nan=0.0)
