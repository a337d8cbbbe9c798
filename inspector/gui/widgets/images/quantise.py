"""Numbers to 8-bit colours: limits with the share that they clip, NaN and infinity as colours of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.theme import BEYOND, INFINITE, LAST, MASKED, NOT_A_NUMBER, colour_table

Array = npt.NDArray[Any]
ROBUST = (0.5, 99.5)
SAMPLE = 50_000
LOGARITHMIC, CENTRED = ("log", "ratio"), ("diverging", "ratio")
"""Scales whose axis and colours go with the logarithm; and those with a middle: 0, or for ratios 1."""


BARELY = 1e-6
"""Part of the range by which a number may be beyond it that is at its end: float32 rounds to 6e-8."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Limits of a colour map. `clipped` is the share of numbers beyond them; `log`: limits are log10 of values.

    `masked`: −∞ marks cells that do not exist (keys a causal mask hides, lags beyond the end). `root`: colour
    goes with the square root, so that faint attention is visible.

    `robust`, `full`: limits that leave out 1 % of the numbers, and those that leave out none; None where not known.
    `view`: those of what is in view, where colours follow it. `colours`: another map than that of the scale. `marked`:
    what is beyond the limits has a colour of its own.
    """

    low: float
    high: float
    scale: str = "sequential"
    log: bool = False
    clipped: float = 0.0
    masked: bool = False
    root: bool = False
    robust: tuple[float, float] | None = None
    full: tuple[float, float] | None = None
    view: tuple[float, float] | None = None
    colours: str = ""
    marked: bool = False

    @property
    def table(self) -> npt.NDArray[np.uint32]:
        """(256,) ARGB colours of the indices."""
        return colour_table(self.colours or self.scale, self.marked)

    @property
    def beyond(self) -> tuple[bool, bool]:
        """Whether there are numbers below and above the limits, as far as that is known."""
        if self.full is None:
            return False, False
        return self.full[0] < self.low - self._slack, self.full[1] > self.high + self._slack

    @property
    def of_view(self) -> bool:
        """Whether they are those of what is in view."""
        return self.view == (self.low, self.high)

    def with_view(self, view: tuple[float, float] | None) -> Levels:
        """The same, and what the limits of what is in view are."""
        return replace(self, view=view)

    @property
    def _slack(self) -> float:
        """What float32 rounds away of the limits."""
        return 1e-6 * (self.high - self.low)

    def index(self, values: Array) -> npt.NDArray[np.uint8]:
        """Colour indices: 0 … 252 data, 253 masked, 254 ±∞, 255 NaN; where it is marked 252 is beyond the limits."""
        with np.errstate(all="ignore"):
            share = values.astype(
                np.float32
            )  # one copy, in which all is computed: new memory costs more than arithmetic
            if self.log:
                np.log10(share, out=share)
            share -= self.low
            share /= self.high - self.low or 1.0
            outside = (share < -BARELY) | (share > 1 + BARELY) if self.marked else None
            np.clip(share, 0, 1, out=share)
            if self.root:
                np.sqrt(share, out=share)
            share *= LAST - 1 if self.marked else LAST
            share += 0.5
            index = share.astype(np.uint8)
            if outside is not None:
                index[outside] = BEYOND
            finite = np.isfinite(values.sum(dtype=np.float64))
        if finite:  # a sum is not, where any of its numbers is not
            return index
        infinite = np.isinf(values)
        index[infinite] = INFINITE
        if self.masked:
            index[np.isneginf(values)] = MASKED
        index[np.isnan(values)] = NOT_A_NUMBER
        return index


def levels_of(values: Array, scale: str, limits: tuple[float, float] | None) -> Levels:
    """The declared limits, or the middle 99 % of the finite numbers; diverging ones are symmetric about zero, and
    ratios, as logarithms, about 1."""
    log = scale in LOGARITHMIC
    robust, full = _ranges(values, scale)
    if limits is not None:
        if log:  # limits are numbers, not their logarithms
            return Levels(limits[0], limits[1], scale)
        return Levels(limits[0], limits[1], scale, robust=robust, full=full)
    if robust is None or full is None:
        return Levels(0.0, 1.0, scale)
    low, high = robust
    return Levels(low, high, scale, log, _clipped(values, low, high, log=log), robust=robust, full=full)


def _sample(values: Array, *, log: bool) -> Array:
    """(n,) finite numbers, every n-th of many; their logarithms."""
    flat = values.reshape(-1)
    if flat.size > SAMPLE:
        flat = flat[:: -(-flat.size // SAMPLE)]
    data = flat[np.isfinite(flat)].astype(np.float64)
    return np.log10(data[data > 0]) if log else data


def _clipped(values: Array, low: float, high: float, *, log: bool) -> float:
    """The share of the numbers beyond some limits."""
    data = _sample(values, log=log)
    return float(np.mean((data < low) | (data > high)))


def _ranges(values: Array, scale: str) -> tuple[tuple[float, float], tuple[float, float]] | tuple[None, None]:
    """(limits without the most extreme 1 %, those of all numbers), of what goes on an axis; None where there is none.
    With a middle both ends are as far from it."""
    log = scale in LOGARITHMIC
    data = _sample(values, log=log)
    if data.size == 0:
        return None, None
    least, most = _extremes(values, log=log)
    if scale in CENTRED:
        whole = max(-least, most) or 1.0
        reach = float(np.percentile(np.abs(data), ROBUST[1])) or float(np.abs(data).max()) or 1.0
        return (-reach, reach), (-whole, whole)
    low, high = (float(v) for v in np.percentile(data, ROBUST))
    if low == high:
        low, high = float(data.min()), float(data.max())
    return _apart(low, high), _apart(least, most)


def limits_of(ends: tuple[float, float], given: Levels) -> tuple[float, float]:
    """Limits from the least to the largest of some numbers, of what goes on the axis of `given`. With a middle both are
    as far from it; logarithms have no more decades than the given limits, since nothing is seen in many."""
    least, most = (math.log10(end) for end in ends) if given.log else ends
    if given.scale in CENTRED:
        reach = max(-least, most, 0.0) or 1.0
        return -reach, reach
    if given.log:
        least = max(least, most - (given.high - given.low))
    return _apart(least, most)


def _extremes(values: Array, *, log: bool) -> tuple[float, float]:
    """The least and the largest finite number of all, or their logarithms; there is one."""
    known = np.isfinite(values) & (values > 0) if log else np.isfinite(values)
    least, most = (float(how.reduce(values, axis=None, where=known, initial=start)) for how, start in (
        (np.minimum, np.inf), (np.maximum, -np.inf)))  # fmt: skip
    return (math.log10(least), math.log10(most)) if log else (least, most)


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def floored(
    values: Array, scale: str, limits: tuple[float, float] | None, *, decades: float = math.inf,
    least: float = -math.inf, masked: bool,
) -> Levels:  # fmt: skip
    """Levels of a logarithmic map from its smallest to its largest entry, but not from below `least` (a logarithm) or
    `decades` below the largest; they count what lies beyond. Those of any other scale as `levels_of` finds them."""
    levels = replace(levels_of(values, scale, limits), masked=masked)
    if not levels.log:
        return levels
    with np.errstate(all="ignore"):
        data = np.log10(values[np.isfinite(values) & (values > 0)].astype(np.float64))
    if not len(data):
        return levels
    high = float(data.max())
    low = max(float(data.min()), high - decades, least)
    low = low if low < high else high - 1.0
    whole = (min(float(data.min()), low), high)
    return replace(levels, low=low, high=high, clipped=float(np.mean(data < low)), full=whole)


def extreme(low: Array, high: Array, scale: str) -> Array:
    """The number that a cell of several shows: the one farther from the centre where there is one, else the largest."""
    if low is high:
        return low
    if scale == "diverging":
        with np.errstate(all="ignore"):
            chosen: Array = np.negative(low)
            np.maximum(high, chosen, out=chosen)
            np.copysign(chosen, low + high, out=chosen)  # low ≤ high; four times as fast as where
        return chosen
    if scale == "ratio":
        with np.errstate(all="ignore"):
            farther: Array = np.where(high * low >= 1, high, low)  # |log high| ≥ |log low|
        return farther
    return high
