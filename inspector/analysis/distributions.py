"""Two sets of numbers as distributions: histograms over common bins, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import CaptureError, Reference
from inspector.capture.by_parts import parts_of

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
BINS = 60
MOST_CELLS = 1 << 20
"""Numbers of a side that are sorted. Of more of them some are taken, evenly, and that is said."""
MOST_PARTS = 16
"""Parts of such a side that are read."""
DECADES = 3.0
"""A range of positive numbers of at least so many powers of ten is divided on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Distributions:
    """Attributes:
    edges: (k + 1,) of the bins; logarithmic: whether they have equal ratios instead of equal widths.
    first, second: (k,) the share of each side's finite numbers in each bin.
    counts: how many finite numbers each side has; left_out: how many known ones are not finite (NaN or infinite).
    cells: how many cells each side has; where that is more than MOST_CELLS the counts are of those that were taken.
    ks: the Kolmogorov-Smirnov distance, the largest difference of the two cumulative distributions: 0 to 1.
    wasserstein: the first Wasserstein distance, the area between these, in the unit of the numbers.
    """

    edges: Floats
    logarithmic: bool
    first: Floats
    second: Floats
    counts: tuple[int, int]
    left_out: tuple[int, int]
    cells: tuple[int, int]
    ks: float
    wasserstein: float

    @property
    def sentence(self) -> str:
        """The distances and their n."""
        counts = [
            f"{count:,} of {cells:,}" if cells > MOST_CELLS else f"{count:,}"
            for count, cells in zip(self.counts, self.cells, strict=True)
        ]
        lost = sum(self.left_out)
        without = f"; {lost:,} that are not finite are left out" if lost else ""
        return (
            f"Kolmogorov–Smirnov distance {self.ks:.3g}, Wasserstein distance {self.wasserstein:.3g} "
            f"(n = {counts[0]} and {counts[1]}{without})"
        )


def distributions(before: Reference, after: Reference, name: str) -> Distributions:
    """The distributions of one channel on two sides, over all its positions; these need not correspond.

    Raises CaptureError where a side does not have it, the units differ, or nothing is finite.
    """
    for side in (before, after):
        if name not in side.view.channels or not side.view.revision(name, side.frame):
            raise CaptureError(f"{side.name} has no {name}.")
    units = [side.view.channel(name, side.frame).unit for side in (before, after)]
    if units[0] != units[1]:
        raise CaptureError(f"{name} has the unit {units[0]!r} in {before.name}, and {units[1]!r} in {after.name}.")
    found = [_numbers(side, name) for side in (before, after)]
    for side, (numbers, _, _) in zip((before, after), found, strict=True):
        if not len(numbers):
            raise CaptureError(f"No number of {name} is finite in {side.name}.")
    (one, lost, cells), (other, lost_too, cells_too) = found
    edges, logarithmic = _edges(one, other)
    first, second = (np.histogram(numbers, edges)[0] / len(numbers) for numbers in (one, other))
    ks, wasserstein = distances(one, other)
    return Distributions(
        edges, logarithmic, first, second, (len(one), len(other)), (lost, lost_too), (cells, cells_too), ks, wasserstein
    )


def _numbers(side: Reference, name: str) -> tuple[Floats, int, int]:
    """(finite numbers, sorted; how many known ones are not finite; how many cells there are)."""
    extent = side.view.extent(name, side.frame)
    cells = int(np.prod(extent, dtype=object))
    parts = parts_of(extent)
    if cells > MOST_CELLS:
        parts = [parts[n] for n in np.unique(np.linspace(0, len(parts) - 1, MOST_PARTS).astype(int))]
    room = max(1, MOST_CELLS // len(parts)) if parts else 0
    taken: list[Floats] = []
    for cut in parts:
        known = side.view.known(name, side.frame, cut)
        flat = np.ma.getdata(side.view.block(name, side.frame, cut))[known]
        taken.append(flat[:: max(1, -(-len(flat) // room))].astype(np.float64))
    flat = np.concatenate(taken) if taken else np.zeros(0)
    fine = np.isfinite(flat)
    return np.sort(flat[fine]), int((~fine).sum()), cells


def _edges(one: Floats, other: Floats) -> tuple[Floats, bool]:
    low, high = float(min(one[0], other[0])), float(max(one[-1], other[-1]))
    if low > 0 and high / low >= 10**DECADES:
        edges = np.geomspace(low, high, BINS + 1)
        edges[0], edges[-1] = low, high  # rounding would leave the ends out
        return edges, True
    if low == high:
        width = max(abs(low), 1.0) / 2
        low, high = low - width, high + width
    return np.linspace(low, high, BINS + 1), False


def distances(one: Floats, other: Floats) -> tuple[float, float]:
    """(Kolmogorov-Smirnov, first Wasserstein) of two sorted samples of numbers, (n,) and (m,).

    With F and G the shares of numbers that are at most x: sup |F − G|, and the integral of |F − G| over x.
    """
    places = np.sort(np.concatenate((one, other)))
    gaps = np.abs(
        np.searchsorted(one, places, side="right") / len(one)
        - np.searchsorted(other, places, side="right") / len(other)
    )
    return float(gaps.max()), float((gaps[:-1] * np.diff(places)).sum())
