"""Largest attention weight: how concentrated a head is on one key."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.attention.rows import RowBlock
from inspector.engine.attention.statistics import per_attention_row
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe


@QUANTITIES.register("attention/largest_weight")
@per_attention_row(
    Describe(
        kind="attention_statistic", title="largest attention weight", formula="max_k A_qk", limits=(0.0, 1.0),
        source="Voita et al. 2019, Analyzing multi-head self-attention",
    ),
    signal="attention/largest_weight", summary="largest weight of each head, per query",
)  # fmt: skip
def largest_weight(block: RowBlock) -> Tensor:
    """max_k A[a, q, k]: (a, q)."""
    return block.largest
