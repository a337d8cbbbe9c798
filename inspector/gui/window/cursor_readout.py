"""The exact numbers beside the panels: those of the panels that are visible, under a heading for each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from inspector.capture import Capture
from inspector.gui.widgets.plain_text import clean

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.sequence_row import SequenceRow

Row = tuple[str, str]
MOST_ROWS = 12
"""Rows of one panel; for a panel with more, the number of those left out is shown."""


def rows_of(
    capture: Capture | None, panels: Mapping[str, Panel], seen: Container[str], strips: Iterable[SequenceRow]
) -> list[Row]:
    """The position along every axis, then the title of each panel that is visible, (title, ""), and its numbers."""
    from inspector.gui.panel.compared import compared_runs_short

    rows: list[Row] = []
    for strip in strips:
        position = strip.looking.position
        if position.step is not None and strip.looking.length:
            names = capture.labels(strip.axis, position.frame) if capture is not None else ()
            name = f"  {names[position.step]!r}" if position.step < len(names) else ""
            where = strip.strip.where(position.step)
            rows.append((clean(strip.described.title), f"{position.step}{name}{where and f'  {where}'}"))
    for key, panel in panels.items():
        if panel.state != "figure" or key not in seen:
            continue
        found = panel.labelled_readout()
        if found:
            runs = compared_runs_short(panel)
            rows += [(f"{panel.title}: {runs}" if runs else panel.title, ""), *found[:MOST_ROWS]]
            if len(found) > MOST_ROWS:
                rows.append((f"and {len(found) - MOST_ROWS} more numbers", "Save numbers…"))
    return rows
