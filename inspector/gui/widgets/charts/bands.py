"""A long series as its mean and its extremes, where more than two of its numbers share a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import reduce_rows

Array = npt.NDArray[Any]
CROWDED = 2.0
"""Steps a pixel beyond which a curve would be a solid block."""


def crowded(steps: float, pixels: float) -> bool:
    """Whether so many steps are too many for a line of so many pixels."""
    return steps > CROWDED * max(1.0, pixels)


def bands(values: Array, first: int, cells: int) -> tuple[Array, Array, Array, Array]:
    """(x, least, mean, largest) of at most `cells` parts of a series (steps,) whose first step is `first`. NaN is left
    out; a part in which nothing is known or finite is NaN. x is the middle of a part."""
    factor = max(1, -(-len(values) // max(1, cells)))
    finite = np.isfinite(values)
    known = np.where(finite, values, np.nan).astype(np.float64)
    low, high = (reduce_rows(known, factor, how) for how in (np.fmin, np.fmax))
    starts = np.arange(0, len(values), factor)
    if not len(starts):
        return np.zeros(0), low, np.zeros(0), high
    count = np.add.reduceat(finite.astype(np.int64), starts)
    total = np.add.reduceat(np.where(finite, known, 0.0), starts)
    with np.errstate(all="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
    widths = np.minimum(factor, len(values) - starts)
    return first + starts + (widths - 1) / 2, low, mean, high
