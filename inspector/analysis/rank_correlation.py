"""Rank correlation of two rows of numbers, and its spread over rows by bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean over rows, and the bounds within which the means of 95 % of the bootstrap samples lie."""

    mean: float
    low: float
    high: float
    rows: int


def ranks(values: Array) -> Array:
    """(n,) ranks from 1, equal values share the mean of theirs."""
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    found[order] = np.arange(1, len(values) + 1)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=found)
    return np.asarray((sums / counts)[inverse])


def spearman(one: Array, other: Array) -> float:
    """ρ: Pearson's correlation of the ranks (Spearman 1904). NaN for fewer than three numbers, or where one of both
    rows is constant."""
    a, b = ranks(one), ranks(other)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / size if len(a) > 2 and size > 0 else float("nan")


def kendall(one: Array, other: Array) -> float:
    """τ_b: pairs in the same order less those in the opposite one, over the number without ties (Kendall 1945)."""
    a, b = (np.subtract(row[:, None] > row, row[:, None] < row, dtype=np.int8) for row in (one, other))
    untied = [len(row) ** 2 - float((np.unique(row, return_counts=True)[1] ** 2).sum()) for row in (one, other)]
    size = float(np.sqrt(untied[0] * untied[1]))
    return float((a == b).sum() - (a == -b).sum()) / size if len(one) > 2 and size > 0 else float("nan")


def ordered_by_chance(values: Array, *, falling: bool) -> float:
    """Probability that numbers without an order fall (or rise) as much: Mann–Kendall, one-sided; NaN with a NaN.

    Exact where no two are equal: inversions of a random permutation are the sum of independent uniform numbers, 0 to
    k − 1 for the k-th (Knuth, TAOCP 3, 5.1.1); else the normal approximation with the variance of ties (Kendall 1970).
    """
    n, signs = len(values), np.sign(np.subtract.outer(values, values))
    if np.isnan(signs).any():
        return float("nan")
    score = float(np.tril(signs).sum()) * (-1 if falling else 1)
    ties = np.unique(values, return_counts=True)[1].astype(float)
    if (ties > 1).any():
        variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
        return 0.5 * math.erfc(score / math.sqrt(2 * variance)) if variance > 0 else 1.0
    inversions = np.ones(1)
    for k in range(2, n + 1):
        inversions = np.convolve(inversions, np.full(k, 1 / k))
    at_most = round((n * (n - 1) / 2 - score) / 2)
    return float(inversions[: at_most + 1].sum())


def spread(values: Array, seed: int = 0) -> Spread:
    """The mean of the finite values and its spread, by drawing as many of them again and again (Efron 1979)."""
    found = np.asarray(values, float)
    found = found[np.isfinite(found)]
    if len(found) < 2:
        only = float(found[0]) if len(found) else float("nan")
        return Spread(only, float("nan"), float("nan"), len(found))
    draws = np.random.default_rng(seed).integers(len(found), size=(DRAWS, len(found)))
    low, high = np.quantile(found[draws].mean(1), (0.025, 0.975))
    return Spread(float(found.mean()), float(low), float(high), len(found))
