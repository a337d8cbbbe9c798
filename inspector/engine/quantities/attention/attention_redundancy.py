"""How alike the heads of a layer attend: Jensen–Shannon divergence of their maps, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import torch
from torch import Tensor

from inspector.engine.analyses.attention.descent import Descent, heads_together
from inspector.engine.analyses.attention.lineages import lineages
from inspector.engine.attention.map_pages import method
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

NAME = "attention/redundancy"
ABOUT = Describe(
    kind="attention_statistic", unit="nat", title="divergence of heads", limits=(0.0, math.log(2.0)),
    formula="mean over queries of JS(A_a, A_b) = H(½ A_a + ½ A_b) − ½ H(A_a) − ½ H(A_b); 0: the same map, ln 2: "
    "nothing in common", source="Clark et al. 2019, What does BERT look at?, section 6",
)  # fmt: skip

OVER = "over rows that sum to 1 in both heads"
ONE = "{} has one head, and no other was computed beside it from the same, so there is none to compare it with."
ELSEWHERE = "Its head is compared in {}, with the others that were computed beside it."
BESIDE = "heads that were computed one by one: {}"
NO_SHARES = "No row of the weights of {} sums to 1, so they are no distributions whose divergence could be taken."


@QUANTITIES.register(NAME)
@per_run(
    summary="how alike the heads of a layer attend: Jensen–Shannon divergence of every pair", order=60, default=False,
    needs=(ATTENTION,), cost="a pass over the maps for each head", work=lambda run: run.call * 2,
)  # fmt: skip
def redundancy(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/redundancy` (head, other) of every attention with two heads and more; of heads that a
    model computes one by one at the place of the first of them.

    Rows without an allowed key, and of weights that do not sum to 1, are left out; refused where no row is left.
    """
    usable = []
    for attention in trace.attentions:
        reason = refusal(attention)
        if reason is not None:
            emit.refuse(f"{attention.place}:{NAME}", reason)
        else:
            usable.append(attention)
    for heads in _layers(trace, usable, emit):
        name = f"{heads[0].place}:{NAME}"
        for other in heads[1:]:
            emit.refuse(f"{other.place}:{NAME}", ELSEWHERE.format(heads[0].place))
        found = divergences(heads, trace.look_at, emit)
        if not bool(found.isfinite().any()):
            emit.refuse(name, NO_SHARES.format(heads[0].place))
            continue
        beside = BESIDE.format(", ".join(one.place for one in heads)) if len(heads) > 1 else ""
        channel = ABOUT.channel(
            name, ("head", "other"), tuple(found.shape), "float64", module=heads[0].module,
            method="; ".join(filter(None, (method(heads[0], ABOUT.method), OVER, beside))),
        )  # fmt: skip
        emit.array(channel, found)


def _layers(trace: Trace, attentions: Sequence[Attention], emit: Emitter) -> Iterator[tuple[Attention, ...]]:
    """Those whose heads are compared: of one attention with several, or of several with one head each."""
    groups: dict[Hashable, list[Attention]] = {}
    for one in attentions:
        rows = Rows(one, trace.look_at)
        if rows.heads > 1:
            yield (one,)
        else:
            groups.setdefault((one.queries_from, one.keys_from, rows.queries, rows.keys), []).append(one)
    for some in groups.values():
        try:
            layers = _beside(trace, some) if len(some) > 1 else [(some[0],)]
        except Unsupported as reason:
            for one in some:
                emit.refuse(f"{one.place}:{NAME}", str(reason))
            continue
        for layer in layers:
            if len(layer) > 1:
                yield layer
            else:
                emit.refuse(f"{layer[0].place}:{NAME}", ONE.format(layer[0].place))


def _beside(trace: Trace, attentions: Sequence[Attention]) -> list[tuple[Attention, ...]]:
    """Heads of one layer together, by what they were computed from. Raises Unsupported."""
    every = sorted(trace.attentions, key=lambda one: one.order)
    return [layer.heads for layer in heads_together(Descent(every, lineages(trace)), attentions)]


def divergences(attentions: Sequence[Attention], sample: int, emit: Emitter) -> Tensor:
    """(a, a) the mean divergence of every pair of the heads of some attentions; NaN where no row counts."""
    every = [Rows(one, sample) for one in attentions]
    heads, queries, keys = sum(rows.heads for rows in every), every[0].queries, every[0].keys
    total, count = (torch.zeros(heads, heads, dtype=torch.float64) for _ in range(2))
    step = max(1, (1 << 20) // max(1, heads * keys))
    for q0 in range(0, queries, step):
        emit.check()
        blocks = [rows.block(q0, min(q0 + step, queries)) for rows in every]
        parts = [blocks[0].weights] if len(blocks) == 1 else [block.full() for block in blocks]
        weights = torch.cat(parts).double()
        there = torch.cat([block.bounded & ~block.largest.isnan() for block in blocks])
        there &= (weights.nan_to_num().sum(-1) - 1).abs() < 1e-2
        own = torch.special.entr(weights).sum(-1)
        for head in range(heads):
            mixed = torch.special.entr(0.5 * (weights + weights[head])).sum(-1)
            both = there & there[head]
            each = (mixed - 0.5 * (own + own[head])).clamp_min(0.0)
            total[head] += torch.where(both, each, 0.0).sum(1).cpu()
            count[head] += both.sum(1).cpu()
    return total / count
