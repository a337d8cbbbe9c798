"""Rows of a table by their names, and its columns by their numbers: a quantity may order its statistics freely."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import CaptureError, coordinate_of
from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]


def find_row(channel: Channel, name: str, dim: str = "statistic") -> int | None:
    """The position of a name along an axis of a channel; None where there is none."""
    names = channel.labels.get(dim, ())
    return names.index(name) if name in names else None


def row_of(channel: Channel, name: str, dim: str = "statistic") -> int:
    """The same, for a name that must exist. Raises CaptureError."""
    found = find_row(channel, name, dim)
    if found is None:
        known = ", ".join(channel.labels.get(dim, ())) or "no names"
        raise CaptureError(f"{channel.name} has no {dim} {name!r}; along this axis it has {known}.")
    return found


def rows_of(channel: Channel, table: Array, *names: str, dim: str = "statistic") -> list[Array]:
    """Some rows of a channel's whole array, or of a region that has all rows. Raises CaptureError."""
    rows = np.moveaxis(table, channel.dims.index(dim), 0)
    return [rows[row_of(channel, name, dim)] for name in names]


def coordinates(view: View, channels: Iterable[Channel], dim: str, frame: int) -> dict[str, Array]:
    """The numbers along the axes on which some channels have this dim, by the names of the channels that have them."""
    axes = dict.fromkeys(channel.domain(dim) for channel in channels if dim in channel.dims)
    found = (coordinate_of(view, axis, frame) for axis in axes)
    return {one.name: view.array(one.name, frame) for one in found if one is not None}


def scalar_of(view: Any, name: str, channel: str, frame: int) -> float:
    """A number written beside a channel, in the frame that the channel is of; NaN where there is none."""
    at = view.frame_of(channel, frame)
    return next((one.value for one in view.scalars if one.name == name and one.frame == at), math.nan)
