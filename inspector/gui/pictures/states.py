"""The states of the last layer, by step and unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.clipping import percent
from inspector.analysis.glances import number
from inspector.gui.panel.labelled import rows_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, sketch_of_map, there
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

find = has("state", ("step", "unit"))
COARSE = 256


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """The map of one layer; its sentence is the share near the bounds, where that was counted, else the range."""
    channel = [one for one in channels if one.signal == "h"][-1:] or channels[-1:]
    chosen = channel[0]
    more = f"; {len(channels)} states in all" if len(channels) > 1 else ""
    return sketch_of_map(view, frame, chosen, f"{chosen.place} {chosen.signal}: {_said(view, frame, chosen)}{more}")


def _said(view: Any, frame: int, channel: Channel) -> str:
    name = f"{channel.name}/saturation"
    if there(view, name, frame):
        left, right = rows_of(view.channel(name, frame), view.array(name, frame), "left", "right")
        return f"near −1 in {percent(float(np.mean(left)))} and near 1 in {percent(float(np.mean(right)))}"
    low, high = view.overview(channel.name, frame, size=(COARSE, view.extent(channel.name, frame)[1]))
    if not (np.isfinite(low).any() and np.isfinite(high).any()):
        return "no finite number"
    broken = "" if np.isfinite(low).all() and np.isfinite(high).all() else ", and numbers that are not finite"
    ends = [number(float(end)) for end in (low[np.isfinite(low)].min(), high[np.isfinite(high)].max())]
    return f"between {ends[0]} and {ends[1]}{broken}"


PICTURES.register("states")(SmallPicture("States", "states", 80, find, read))
