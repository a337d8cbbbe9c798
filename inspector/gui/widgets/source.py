"""From a channel of a capture to what a picture wants: overviews, levels, curves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.gui.widgets.quantise import Levels, levels_of
from inspector.gui.widgets.stepplot import POINTS, decimated
from inspector.records import Channel

Array = npt.NDArray[Any]
GLANCE = 64


def overview_of(capture: Capture, name: str, frame: int) -> Callable[[tuple[int, int], int], tuple[Array, Array]]:
    """What a heatmap asks for: minima and maxima of a range of steps in at most so many cells, every unit."""
    units = capture.extent(name, frame)[1]

    def look(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        return capture.overview(name, frame, region=(slice(*cut),), size=(cells, units))

    return look


def glance(capture: Capture, channel: Channel, frame: int) -> tuple[Levels, bool, bool]:
    """(levels, any NaN, any infinity) from a coarse look at the whole channel."""
    low, high = capture.overview(channel.name, frame, size=(GLANCE, *capture.extent(channel.name, frame)[1:]))
    both = np.stack((low.reshape(-1), high.reshape(-1)), axis=-1)
    levels = levels_of(both, channel.scale, channel.limits)
    return levels, bool(np.isnan(both).any()), bool(np.isinf(both).any())


def line_of(capture: Capture, name: str, frame: int, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """(x, y) of a (step,) channel over the steps in view, thinned to what a screen can show."""
    steps = capture.extent(name, frame)[0]
    first, stop = max(0, int(bounds[0])), min(steps, int(bounds[1]) + 2)
    if stop <= first:
        return np.zeros(0), np.zeros(0)
    low, high = capture.overview(name, frame, region=(slice(first, stop),), size=(POINTS // 2,))
    width = max(1.0, (stop - first) / max(1, len(low)))
    return decimated(low, high, float(first), width)
