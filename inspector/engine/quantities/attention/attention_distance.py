"""Mean attention distance: how far back or ahead a query attends."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.attention.rows import RowBlock
from inspector.engine.attention.statistics import per_attention_row
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe


@QUANTITIES.register("attention/distance")
@per_attention_row(
    Describe(
        kind="attention_statistic", unit="step", title="mean attention distance", formula="Σ_k A_qk |q − k|",
        source="Dosovitskiy et al. 2021; Raghu et al. 2021",
    ),
    signal="attention/distance", summary="mean distance |q − k| of each head, per query (self-attention)",
    self_only=True,
)  # fmt: skip
def distance(block: RowBlock) -> Tensor:
    """D[a, q] = Σ_k A[a, q, k] |q − k| in steps, q the query's position among the keys. (a, q, k) → (a, q)."""
    rows, keys = block.weights.shape[1:]
    kind, device = block.weights.dtype, block.weights.device
    queries = torch.arange(block.position, block.position + rows, dtype=kind, device=device)
    away = (queries[:, None] - torch.arange(keys, dtype=kind, device=device)).abs_()
    return (block.weights * away).sum(dim=-1)
