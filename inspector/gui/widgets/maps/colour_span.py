"""The range of colours of a map as two ends on an axis: where they lie, what dragging and keys make of them, and how
many numbers lie where. Positions are those of the axis, logarithms where the colours go with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.images.colour_choice import OWN, ColourChoice
from inspector.gui.widgets.images.quantise import CENTRED, Levels

Array = npt.NDArray[Any]
Overview = Callable[[tuple[int, int], int], tuple[Array, Array]]
LOW, HIGH, BOTH = "low", "high", "both"
NEAREST, STEP = 1 / 250, 1 / 50
"""Shares of the axis: the least distance of the ends, and how far a key moves one."""
BINS, PLACES, AT_EACH = 48, 16, 64
"""Bins of the histogram; places at which so many columns are read for it."""
MOST_EXPONENT = 300.0


@dataclass(frozen=True, slots=True)
class Span:
    """Two ends on an axis from `first` to `last`; `centred`: both are as far from 0."""

    low: float
    high: float
    first: float
    last: float
    centred: bool = False

    @classmethod
    def of(cls, given: Levels, drawn: Levels) -> Span:
        """The ends that are drawn, on an axis that has all numbers and both ends."""
        full = given.full or (given.low, given.high)
        first, last = min(full[0], drawn.low, given.low), max(full[1], drawn.high, given.high)
        return cls(drawn.low, drawn.high, first, last, given.scale in CENTRED)

    @property
    def width(self) -> float:
        """Of the axis."""
        return (self.last - self.first) or 1.0

    def share(self, value: float) -> float:
        """Where on the axis a value lies, 0 to 1."""
        return min(1.0, max(0.0, (value - self.first) / self.width))

    def at(self, share: float) -> float:
        """The value at a share of the axis."""
        return self.first + share * self.width

    def nearest(self, value: float) -> str:
        """Which end is taken hold of at a value: the nearer one, or both well between them."""
        inside = min(value - self.low, self.high - value)
        if not self.centred and inside > 0.3 * (self.high - self.low):
            return BOTH
        return LOW if abs(value - self.low) < abs(value - self.high) else HIGH

    def moved(self, end: str, by: float) -> Span:
        """An end, or both, moved by so much; the ends stay on the axis and apart."""
        least = NEAREST * self.width
        if self.centred:
            high = self.high - by if end == LOW else self.high + by
            high = min(max(high, least / 2), max(abs(self.first), abs(self.last)))
            return replace(self, low=-high, high=high)
        if end == BOTH:
            by = min(max(by, self.first - self.low), self.last - self.high)
            return replace(self, low=self.low + by, high=self.high + by)
        if end == LOW:
            return replace(self, low=min(max(self.low + by, self.first), self.high - least))
        return replace(self, high=max(min(self.high + by, self.last), self.low + least))

    def chosen(self, now: ColourChoice, *, log: bool) -> ColourChoice:
        """The choice of these ends, with what else was chosen."""
        low, high = self.low, self.high
        if log:
            low, high = (10.0 ** min(MOST_EXPONENT, max(-MOST_EXPONENT, end)) for end in (low, high))
        return replace(now, span=OWN, low=low, high=high)


def counted(look: Overview, columns: int, span: Span, *, log: bool) -> npt.NDArray[np.int64]:
    """(bin,) how many numbers lie in each part of the axis, of columns at even distances."""
    wide = min(columns, AT_EACH)
    starts = np.unique(np.linspace(0, max(0, columns - wide), PLACES).astype(int)) if columns > wide else [0]
    found = np.zeros(BINS, np.int64)
    for start in starts:
        values = np.asarray(look((int(start), int(start) + wide), wide)[0], np.float64).reshape(-1)
        with np.errstate(all="ignore"):
            values = np.log10(values) if log else values
        found += np.histogram(values[np.isfinite(values)], BINS, (span.first, span.first + span.width))[0]
    return found
