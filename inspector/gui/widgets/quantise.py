"""Numbers to 8-bit colours: limits with the share that they clip, NaN and infinity as colours of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.theme import INFINITE, LAST, MASKED, NOT_A_NUMBER

Array = npt.NDArray[Any]
ROBUST = (0.5, 99.5)
SAMPLE = 50_000
LOGARITHMIC, CENTRED = ("log", "ratio"), ("diverging", "ratio")
"""Scales whose axis and colours go with the logarithm; and those with a middle: 0, or for ratios 1."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Limits of a colour map. `clipped` is the share of numbers beyond them; `log`: limits are log10 of values.

    `masked`: −∞ marks cells that do not exist (keys a causal mask hides, lags beyond the end). `root`: colour
    goes with the square root, so that faint attention is visible.
    """

    low: float
    high: float
    scale: str = "sequential"
    log: bool = False
    clipped: float = 0.0
    masked: bool = False
    root: bool = False

    def index(self, values: Array) -> npt.NDArray[np.uint8]:
        """Colour indices: 0 … 252 data, 253 masked, 254 ±∞, 255 NaN."""
        with np.errstate(all="ignore"):
            share = values.astype(
                np.float32
            )  # one copy, in which all is computed: new memory costs more than arithmetic
            if self.log:
                np.log10(share, out=share)
            share -= self.low
            share /= self.high - self.low or 1.0
            np.clip(share, 0, 1, out=share)
            if self.root:
                np.sqrt(share, out=share)
            share *= LAST
            share += 0.5
            index = share.astype(np.uint8)
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
    if limits is not None:
        return Levels(limits[0], limits[1], scale)
    flat = values.reshape(-1)
    if flat.size > SAMPLE:
        flat = flat[:: -(-flat.size // SAMPLE)]
    data = flat[np.isfinite(flat)].astype(np.float64)
    log = scale in LOGARITHMIC
    if log:
        data = np.log10(data[data > 0])
    if data.size == 0:
        return Levels(0.0, 1.0, scale)
    if scale in CENTRED:
        reach = float(np.percentile(np.abs(data), ROBUST[1])) or float(np.abs(data).max()) or 1.0
        low, high = -reach, reach
    else:
        low, high = (float(v) for v in np.percentile(data, ROBUST))
        if low == high:
            low, high = float(data.min()), float(data.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    clipped = float(np.mean((data < low) | (data > high)))
    return Levels(low, high, scale, log, clipped)


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
    return replace(levels, low=low, high=high, clipped=float(np.mean(data < low)))


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
