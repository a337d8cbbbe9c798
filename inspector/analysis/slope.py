"""Slopes that neither noise nor a few points move, with their spread: the median of the slopes of all pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
NORMAL_95 = 1.959964
"""95 % of a normal distribution lie within so many standard deviations."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The slope of y over x, and the bounds of its 95 % interval."""

    middle: float
    low: float
    high: float


def slope_of(x: Floats, y: Floats) -> Slope:
    """Of points (n,) with different x, few of them since all pairs are looked at: Theil 1950, and Sen 1968 for the
    interval, whose ends are the slopes that lie half of z · sd(Kendall's S) pairs from the middle one in order; the
    variance of S counts ties of y. NaN of fewer than three points, and of any that is not finite.
    """
    n = len(x)
    if n < 3 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Slope(math.nan, math.nan, math.nan)
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    ties = np.unique(y, return_counts=True)[1].astype(float)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    away = NORMAL_95 * math.sqrt(variance)
    low = max(0, math.floor((len(slopes) - away) / 2) - 1)
    high = min(len(slopes) - 1, math.ceil((len(slopes) + away) / 2))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))
