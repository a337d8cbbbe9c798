"""Differences between two runs of one model that are no more than rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]
ROUNDINGS = 16.0
"""Roundings, of the largest number of a step, by which equal runs may differ: an edited run is written out as a loop,
and kernels add up in other orders. Counter-example: a change that is smaller than this is real and is shown as none; a
network that amplifies rounding over many steps differs by more."""
STORED = 1.0
"""The same for numbers that are stored with fewer digits than they were computed with."""


def counts_as_none(channel: Channel) -> str:
    """What is said of a difference: which changes count as 0."""
    count = _roundings(channel)
    many = "a rounding" if count == 1 else f"{count:.0f} roundings"
    return f"differences up to {many} of {channel.dtype} count as 0"


def rounding_of(view: View, channel: Channel, frame: int, cut: tuple[slice, ...]) -> Array:
    """What a number of a region may differ by, to be broadcast over it.

    Of channels by step and unit the size is that of the largest finite number of each step, of curves over the steps
    that of the largest of all, of others each number's own: sums round by the size of what they add up.
    """
    unit = _roundings(channel) * float(np.finfo(channel.dtype).eps)
    by_step = channel.dims[:1] == ("step",)
    if by_step and len(channel.dims) > 1:
        whole = _sizes(view.block(channel.name, frame, cut[:1]))
        rows: Array = whole.reshape(len(whole), -1).max(1, initial=0.0)
        return unit * rows.reshape(-1, *(1,) * (len(channel.dims) - 1))
    if by_step:
        return np.asarray(unit * _sizes(view.block(channel.name, frame)).max(initial=0.0))
    return unit * _sizes(view.block(channel.name, frame, cut))


def _roundings(channel: Channel) -> float:
    return STORED if channel.dtype == "float16" else ROUNDINGS


def _sizes(values: Array) -> Array:
    sizes: Array = np.abs(np.asarray(values, np.float64))
    return np.where(np.isfinite(sizes), sizes, 0.0)
