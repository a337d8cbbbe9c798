"""Whether the innovations of a filter are what they should be: of the size that it expects, and without memory.

Source: Bar-Shalom, Li & Kirubarajan 2001, section 5.4; Ljung & Box 1978; Durbin & Koopman 2012, section 2.12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict

Array = npt.NDArray[Any]
SHARE = 0.95
"""Share of the steps that should be inside a band."""
FEWEST = 20
"""Innovations below which nothing is said of their memory or of how many leave the band."""
SURE = 0.01
"""p below which something is called a misfit. Counter-example: one model in a hundred that is right."""


@dataclass(frozen=True, slots=True)
class Whiteness:
    """Ljung–Box: the statistic of so many lags, and the probability of a larger one for innovations without memory."""

    statistic: float
    lags: int
    p: float


def standardised(innovation: Array, covariance: Array) -> Array:
    """(t, o): L⁻¹ ν with S = L Lᵀ, independent and of variance 1 where the model is right."""
    factor = np.linalg.cholesky(covariance)
    found: Array = np.linalg.solve(factor, innovation[..., None])[..., 0]
    return found


def squared(standard: Array) -> Array:
    """(t,): normalised innovation squared, νᵀ S⁻¹ ν."""
    found: Array = (standard**2).sum(-1)
    return found


def band(dimensions: int, count: int = 1) -> tuple[float, float]:
    """The band in which the mean of `count` such numbers lies with probability SHARE: χ² over its degrees."""
    from scipy.stats import chi2  # takes a third of a second to import

    tails = (1 - SHARE) / 2
    low, high = chi2.ppf((tails, 1 - tails), dimensions * count)
    return float(low / count), float(high / count)


def autocorrelation(series: Array, lags: int) -> Array:
    """(lags,): r_1 … r_lags of a series (t,), Σ (s_t − s̄)(s_{t−k} − s̄) / Σ (s_t − s̄)²; NaN for a constant."""
    away = series - series.mean()
    total = float(away @ away)
    if total <= 0:
        return np.full(lags, np.nan)
    return np.array([away[k:] @ away[:-k] for k in range(1, lags + 1)]) / total


def lags_of(length: int) -> int:
    """How many lags are looked at: as many as are usual, 10 ln t / ln 10, at most a quarter of the series."""
    return max(0, min(length // 4, round(10 * math.log10(max(1, length)))))


def ljung_box(series: Array, lags: int) -> Whiteness:
    """Q = t (t + 2) Σ_k r_k² / (t − k) and its p, of χ² with as many degrees as lags.

    Counter-example: where the model was fitted to this very series p is a little too large.
    """
    from scipy.stats import chi2

    t, r = len(series), autocorrelation(series, lags)
    statistic = float(t * (t + 2) * (r**2 / (t - np.arange(1, lags + 1))).sum())
    return Whiteness(statistic, lags, float(chi2.sf(statistic, lags)))


def size_p(nis: Array, dimensions: int) -> float:
    """Two-sided probability of a mean as far from its expectation, Σ NIS ~ χ²(t o)."""
    from scipy.stats import chi2

    total, degrees = float(nis.sum()), dimensions * len(nis)
    return float(min(1.0, 2 * min(chi2.cdf(total, degrees), chi2.sf(total, degrees))))


def innovation_verdict(nis: Array, standard: Array) -> Verdict:
    """Whether a filter's innovations are those that it expects: one sentence, with the numbers and the direction."""
    count, dimensions = standard.shape
    if count < FEWEST:
        return Verdict("too few", f"too few innovations to judge the filter by: {count}, where {FEWEST} are enough")
    low, high = band(dimensions)
    outside = int(((nis < low) | (nis > high)).sum())
    mean, p = float(nis.mean()), size_p(nis, dimensions)
    tests = [ljung_box(column, lags_of(count)) for column in standard.T]
    white = min(tests, key=lambda one: one.p)
    told = f"mean NIS {mean:.3g} where {dimensions} is expected (p {p:.2g})"
    told += f", {outside} of {count} steps outside the 95 % band"
    memory = f"Ljung–Box over {white.lags} lags: p {white.p:.2g}"
    threshold = SURE / dimensions
    if p >= SURE and white.p >= threshold:
        return Verdict("consistent", f"the filter fits: {told}; {memory}")
    causes = []
    if p < SURE:
        too = (
            "small: errors are larger than the filter expects"
            if mean > dimensions
            else ("large: errors are smaller than the filter expects")
        )
        causes.append(f"Q or R is too {too}")
    if white.p < threshold:
        causes.append("innovations remember earlier ones, so the gain or the dynamics are wrong")
    return Verdict("misfit", f"{'; '.join(causes)}. {told[0].upper()}{told[1:]}; {memory}")
