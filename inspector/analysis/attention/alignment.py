"""What a map of attention says as an alignment of a target (queries) with a source (keys)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.map_pyramid import BLOCK_CELLS, Rows

Array = npt.NDArray[Any]
WIDTH = 0.2
"""How far from the diagonal, as a share of the lengths, a weight still counts (g of Tachibana et al. 2017)."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Numbers of one map; rows without a key that may be attended to, and rows with NaN, are NaN and count nowhere.

    Attributes:
        coverage: (key,) Σ_q A_qk: how much attention a source token got in all (Wu et al. 2016).
        largest: (query,) max_k A_qk.
        entropy: (query,) −Σ_k A_qk ln A_qk in nats.
        path: (query,) the key with the largest weight, −1 where there is none; of equal ones the first.
        focus: the mean of `largest` over the queries (focus rate, Ren et al. 2019).
        diagonality: Σ_qk A_qk exp(−(q/Q − k/K)² / 2g²) / Σ_qk A_qk, 1 for weights on the diagonal alone: 1 less the
            penalty of guided attention (Tachibana et al. 2017). Q is the number of rows so far.
        coverage_penalty: Σ_k ln min(coverage_k, 1), 0 where every source token got a whole weight (Wu et al. 2016).
        unread: source tokens of which the whole target has read less than half a weight.
    """

    coverage: Array
    largest: Array
    entropy: Array
    path: npt.NDArray[np.int64]
    focus: float
    diagonality: float
    coverage_penalty: float
    unread: int


def alignment_of(source: Rows) -> Alignment:
    """The alignment of a map, read in blocks of rows."""
    queries, keys = source.shape
    coverage = np.zeros(keys)
    largest, entropy = np.full(queries, np.nan), np.full(queries, np.nan)
    path = np.full(queries, -1, np.int64)
    near = total = 0.0
    many = max(1, BLOCK_CELLS // max(1, keys))
    for first in range(0, queries, many):
        block = source.rows(first, min(queries, first + many)).astype(np.float64)
        weights = np.where(np.isneginf(block), 0.0, block)
        fine = np.isfinite(weights).all(axis=1) & ~np.isneginf(block).all(axis=1)
        rows = first + np.flatnonzero(fine)
        weights = weights[fine]
        if not len(rows):
            continue
        coverage += weights.sum(axis=0)
        largest[rows], path[rows] = weights.max(axis=1), weights.argmax(axis=1)
        with np.errstate(all="ignore"):
            entropy[rows] = -np.where(weights > 0, weights * np.log(weights), 0.0).sum(axis=1)
        away = rows[:, None] / queries - np.arange(keys) / keys
        near += float((weights * np.exp(-(away**2) / (2 * WIDTH**2))).sum())
        total += float(weights.sum())
    known = largest[np.isfinite(largest)]
    with np.errstate(all="ignore"):
        penalty = float(np.log(np.minimum(coverage, 1.0)).sum())
    return Alignment(
        coverage, largest, entropy, path, float(known.mean()) if len(known) else float("nan"),
        near / total if total else float("nan"), penalty, int((coverage < 0.5).sum()),
    )  # fmt: skip
