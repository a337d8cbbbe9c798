"""How alike the heads of a layer attend: Jensen–Shannon divergence of their maps, pair by pair."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.attention.map_pages import method
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
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
ONE = (
    "{} has one head, so there is no other to compare it with: heads that a model computes one by one are maps of "
    "their own."
)
NO_SHARES = "No row of the weights of {} sums to 1, so they are no distributions whose divergence could be taken."


@QUANTITIES.register(NAME)
@per_run(
    summary="how alike the heads of a layer attend: Jensen–Shannon divergence of every pair", order=60, default=False,
    needs=(ATTENTION,), cost="a pass over the maps for each head", work=lambda run: run.call * 2,
)  # fmt: skip
def redundancy(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/redundancy` (head, other) of every attention with two heads and more.

    Rows without an allowed key, and of weights that do not sum to 1, are left out; refused where no row is left.
    """
    for attention in trace.attentions:
        name, reason = f"{attention.place}:{NAME}", refusal(attention)
        if reason is not None:
            emit.refuse(name, reason)
            continue
        found = divergences(attention, trace.look_at, emit)
        if len(found) < 2:
            emit.refuse(name, ONE.format(attention.place))
        elif not bool(found.isfinite().any()):
            emit.refuse(name, NO_SHARES.format(attention.place))
        else:
            channel = ABOUT.channel(
                name, ("head", "other"), tuple(found.shape), "float64", module=attention.module,
                method="; ".join((method(attention, ABOUT.method), OVER)),
            )  # fmt: skip
            emit.array(channel, found)


def divergences(attention: Attention, sample: int, emit: Emitter) -> Tensor:
    """(a, a) the mean divergence of every pair; NaN where no row counts."""
    rows = Rows(attention, sample)
    total, count = (torch.zeros(rows.heads, rows.heads, dtype=torch.float64) for _ in range(2))
    step = max(1, (1 << 20) // max(1, rows.heads * rows.keys))
    for q0 in range(0, rows.queries, step):
        emit.check()
        block = rows.block(q0, min(q0 + step, rows.queries))
        weights, there = block.weights.double(), block.bounded & ~block.largest.isnan()
        there &= (block.weights.nan_to_num().sum(-1) - 1).abs() < 1e-2
        own = torch.special.entr(weights).sum(-1)
        for head in range(rows.heads):
            mixed = torch.special.entr(0.5 * (weights + weights[head])).sum(-1)
            both = there & there[head]
            each = (mixed - 0.5 * (own + own[head])).clamp_min(0.0)
            total[head] += torch.where(both, each, 0.0).sum(1).cpu()
            count[head] += both.sum(1).cpu()
    return total / count
