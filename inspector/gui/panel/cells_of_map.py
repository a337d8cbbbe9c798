"""What a cell of a map (unit, step) shows where it stands for several steps: their mean, or the most extreme one."""

from __future__ import annotations

from typing import Any

from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.means import has_means, mean_overview
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.source import changes_of, glance, overview_of
from inspector.records import Channel

MEAN, EXTREMES, DENSITY = "mean", "extremes", "density"
CELLS = (MEAN, EXTREMES, DENSITY)
CELLS_TIP = (
    "Where a cell stands for several steps: their mean, or the number of them furthest from 0 (the largest, of colours "
    "without a middle). Density: how many units have which value, whatever their number"
)


def show_cells(
    row: MapRow, capture: Any, channel: Channel, frame: int, how: str, nan: bool, infinite: bool,
    bounds: tuple[float, float] | None = None,
) -> str:  # fmt: skip
    """Draw a channel (step, unit), what is beyond `bounds` marked as saturated; returns the end of the title that says
    what a cell of several steps shows."""
    steps, units = capture.extent(channel.name, frame)
    levels, _, _ = glance(capture, channel, frame)
    mean = how == MEAN and has_means(capture, channel.name, frame)
    if row.shown_as != (channel.name, mean):
        row.forget()
        row.shown_as = (channel.name, mean)
    look = (mean_overview if mean else overview_of)(capture, channel.name, frame)
    row.plot.label_left("unit")
    row.plot.getAxis("left").setTicks(None)
    row.show(
        look, steps, units, levels, channel.unit, capture.revision(channel.name, frame), nan=nan, infinite=infinite,
        gaps=gaps_of(capture, channel.name, frame), changes=changes_of(capture, channel.name, frame), bounds=bounds,
    )  # fmt: skip
    return "; cells are means of steps" if mean else "; cells are extremes of steps"
