"""Rows of a table by their names: a quantity may put its statistics in any order, and add some."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import CaptureError
from inspector.records import Channel

Array = npt.NDArray[Any]


def find_row(channel: Channel, name: str, dim: str = "statistic") -> int | None:
    """Where a name stands along an axis of a channel; None where there is none."""
    names = channel.labels.get(dim, ())
    return names.index(name) if name in names else None


def row_of(channel: Channel, name: str, dim: str = "statistic") -> int:
    """The same, of a name that must be there. Raises CaptureError."""
    found = find_row(channel, name, dim)
    if found is None:
        known = ", ".join(channel.labels.get(dim, ())) or "no names"
        raise CaptureError(f"{channel.name} has no {dim} {name!r}; along this axis it has {known}.")
    return found


def rows_of(channel: Channel, table: Array, *names: str, dim: str = "statistic") -> list[Array]:
    """Some rows of a channel's whole array, or of a region that has all rows. Raises CaptureError."""
    rows = np.moveaxis(table, channel.dims.index(dim), 0)
    return [rows[row_of(channel, name, dim)] for name in names]
