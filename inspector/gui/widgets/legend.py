"""A legend of lines that are there from the start, in the colours of the theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg

from inspector.gui.text import escaped
from inspector.gui.theme import Theme


class Legend(pg.LegendItem):  # type: ignore[misc]
    """Names of curves in a plot; `offset` counts pixels from the left and top, negative ones from the other end."""

    def __init__(
        self, plot: Any, lines: Sequence[Any], names: Sequence[str], offset: tuple[int, int] = (-8, 6)
    ) -> None:
        super().__init__(offset=offset, labelTextSize="8pt", brush=(128, 128, 128, 40))
        self.setParentItem(plot.vb)
        for line, name in zip(lines, names, strict=True):
            self.addItem(line, escaped(name))

    def set_theme(self, theme: Theme) -> None:
        """Other colours; a label keeps its colour until its text is set again."""
        self.setLabelTextColor(theme.text)
        self.setBrush(pg.mkBrush(theme.base + "e0"))
        for _, label in self.items:
            label.setText(label.text, color=theme.text, size="8pt")
