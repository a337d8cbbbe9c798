"""Series over training as they are drawn: thinned to what a screen shows, smoothed, and what no line can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
CELLS = 1200
"""Cells along a plot, each with a minimum and a maximum."""
SMOOTH_CELLS = 4800
"""Cells of which running means are taken where there are more points."""
MARKS = 400
"""Different places along a plot at which points that are not finite are marked."""
NAN, ABOVE, BELOW, NOT_POSITIVE = "NaN", "+∞", "−∞", "≤ 0"
"""What no line can show: marked at the lower edge, and +∞ at the upper one; the last on logarithmic axes only."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """Points that no line can show: their places by sort, and how many they are."""

    places: dict[str, Floats]
    counts: dict[str, int]

    @property
    def words(self) -> str:
        """Their counts: "3 NaN, 1 +∞"."""
        return ", ".join(f"{count:,} {sort}" for sort, count in self.counts.items())


def thinned(x: Floats, y: Floats, cells: int = CELLS) -> tuple[Floats, Floats]:
    """A curve as it is, or minima and maxima in cells where there are more points than can be told apart.

    A cell in which only some points are not finite keeps the others; one without any is a gap.
    """
    if len(y) <= 2 * cells:
        return x, y
    starts = np.linspace(0, len(y), cells, endpoint=False).astype(int)
    finite = np.where(np.isfinite(y), y, np.nan)
    low, high = (how.reduceat(finite, starts) for how in (np.fmin, np.fmax))
    middles = (starts + np.append(starts[1:], len(y))) // 2
    return np.stack((x[starts], x[middles]), 1).reshape(-1), np.stack((low, high), 1).reshape(-1)


def running_mean(x: Floats, y: Floats, points: int) -> tuple[Floats, Floats]:
    """Means of so many neighbours around each point, those that are finite; of long curves around each of many cells.

    Each is a sum of its own window: in differences of cumulative sums one huge value would spoil all that follow.
    """
    if not len(y):
        return x, y
    cell = max(1, len(y) // SMOOTH_CELLS)
    starts = np.arange(0, len(y), cell)
    fine = np.isfinite(y)
    sums = np.add.reduceat(np.where(fine, y, 0.0), starts)
    counts = np.add.reduceat(fine.astype(np.float64), starts)
    width = min(max(1, round(points / cell)) | 1, 2 * ((len(starts) - 1) // 2) + 1)
    window = np.ones(width)
    with np.errstate(all="ignore"):
        means = np.convolve(sums, window, "same") / np.convolve(counts, window, "same")
    return x[np.minimum(starts + cell // 2, len(y) - 1)], np.where(np.isfinite(means), means, np.nan)


def apart(x: Floats) -> Floats:
    """At most MARKS of some places, none left out that stands alone."""
    known = x[np.isfinite(x)]
    if len(known) <= MARKS:
        return known
    low, high = float(known.min()), float(known.max())
    cell = ((known - low) / ((high - low) or 1.0) * (MARKS - 1)).astype(int)
    return known[np.unique(cell, return_index=True)[1]]


def span(values: list[Floats]) -> tuple[float, float]:
    """(least, greatest) finite number of some arrays; (0, 1) where there is none."""
    finite = [one[np.isfinite(one)] for one in values]
    filled = [one for one in finite if len(one)]
    if not filled:
        return 0.0, 1.0
    return min(float(one.min()) for one in filled), max(float(one.max()) for one in filled)
