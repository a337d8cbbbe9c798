"""The cells of maps over iterations that are pointed at, with their names."""

from __future__ import annotations

from inspector.capture import Capture
from inspector.gui.panel.over_iterations.iteration_maps import IterationMaps, bin_words
from inspector.gui.panel.over_iterations.training_data import TrainingData
from inspector.gui.panel.pointing import Marks
from inspector.gui.widgets.controls import measured


def cells_in_words(
    capture: Capture, maps: IterationMaps, marked: Marks, content: TrainingData
) -> list[tuple[str, str]]:
    """(what, value) of the marked row of each map, at its iteration."""
    rows = []
    for row, shown in zip(maps.rows, maps.shown, strict=False):
        at = marked.at(row.plot, len(shown.rows))
        position = row.plot._line.value() if row.plot._line.isVisible() else None
        if at is None or position is None:
            continue
        value = content.cell(capture, shown, int(position), at)
        name = shown.names[at] if shown.channel.kind == "series" else bin_words(capture, shown, int(position), at)
        rows.append((f"{shown.channel.title}: {name}", measured(value, shown.channel.unit)))
    return rows
