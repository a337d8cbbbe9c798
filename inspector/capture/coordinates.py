"""The numbers of the positions along an axis: position 3 of the axis "iteration" is iteration 300.

They are a channel of kind "coordinate" over that axis alone: numbers, not labels, because a long training has a hundred
thousand of them, which are read by block, grow page by page, and are drawn at their places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]
COORDINATE = "coordinate"
STEP = "step"
"""The row of a table that held the iterations in captures whose axes have no coordinates."""


def coordinate_of(view: View, axis: str, frame: int = -1) -> Channel | None:
    """The channel that has the numbers of an axis in a frame; None where positions are merely counted."""
    return next(
        (
            channel for channel in view.channels.values()
            if channel.kind == COORDINATE and [channel.domain(dim) for dim in channel.dims] == [axis]
            and view.revision(channel.name, frame)
        ),
        None,
    )  # fmt: skip


def numbers_along(view: View, axis: str, frame: int = -1) -> Array | None:
    """(n,) float64: the number of each position, NaN where it is not known; None where positions are merely counted."""
    channel = coordinate_of(view, axis, frame)
    if channel is None:
        return None
    found: Array = np.ma.filled(view.array(channel.name, frame).astype(np.float64), np.nan)
    return found


def series(view: View, channel: Channel, frame: int = -1) -> tuple[Array, dict[str, Array]]:
    """(number of each position (n,), values (n,) by name) of a table (statistic, …) of series along its second axis.

    Numbers are NaN where they are not known: the values there have no place on the axis.
    """
    rows = dict(zip(channel.labels.get("statistic", ()), view.array(channel.name, frame), strict=False))
    numbers = numbers_along(view, channel.domain(channel.dims[1]), frame)
    if numbers is None and STEP in rows:
        numbers = np.ma.filled(rows.pop(STEP).astype(np.float64), np.nan)
    if numbers is None:
        numbers = np.arange(max((len(row) for row in rows.values()), default=0), dtype=np.float64)
    return numbers, {name: row[: len(numbers)] for name, row in rows.items()}
