"""Entropy of attention: over how many keys a query spreads its weight."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.attention.rows import RowBlock
from inspector.engine.attention.statistics import per_attention_row
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe


@QUANTITIES.register("attention/entropy")
@per_attention_row(
    Describe(
        kind="attention_statistic", unit="nat", title="attention entropy", formula="−Σ_k A_qk ln A_qk, A_qk ≥ 0",
        source="Vaswani et al. 2017; entropy as in Zhai et al. 2023, arXiv 2303.06296",
    ),
    signal="attention/entropy", summary="entropy of each head's attention, per query",
)  # fmt: skip
def entropy(block: RowBlock) -> Tensor:
    """H[a, q] = −Σ_k A[a, q, k] ln A[a, q, k] in nats: (a, q). See RowBlock.entropy for the computation."""
    return block.entropy


@QUANTITIES.register("attention/entropy_normalised")
@per_attention_row(
    Describe(
        kind="attention_statistic", title="attention entropy, normalised", limits=(0.0, 1.0),
        formula="−Σ_k A_qk ln A_qk / ln n_q, n_q = number of keys that query q may attend to",
        source="Zhai et al. 2023, arXiv 2303.06296", method="exact; NaN for queries with a single allowed key",
    ),
    signal="attention/entropy_normalised", summary="entropy over that of an even spread over the allowed keys",
)  # fmt: skip
def entropy_normalised(block: RowBlock) -> Tensor:
    """H / ln(number of allowed keys): 1 is an even spread, 0 a single key: (a, q). NaN where one key is allowed.

    Above 1 is possible only where the weights of a row sum to more than 1.
    """
    most = block.count.to(block.weights.dtype).log()
    share = block.entropy / most.where(block.count > 1, torch.nan)
    return share.clamp_max(1.0).where(block.bounded, share)
