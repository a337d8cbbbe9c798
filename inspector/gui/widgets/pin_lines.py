"""Pins in a plot: a dashed line at each, with its number at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.gui.widgets.theme import LIGHT, Theme

AT_TOP = 0.94
"""Share of the height at which the numbers stand."""


class PinLines:
    """The lines of one plot, made when they are needed first."""

    def __init__(self, plot: Any) -> None:
        self.plot, self.theme = plot, LIGHT
        self.shown: tuple[tuple[int, int], ...] = ()
        """(step, number) of each."""
        self._lines: list[pg.InfiniteLine] = []

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for line in self._lines:
            self._colour(line)

    def show(self, pins: Sequence[tuple[int, int]]) -> None:
        """These pins, and no others."""
        if tuple(pins) == self.shown:
            return
        self.shown = tuple(pins)
        while len(self._lines) < len(pins):
            self._lines.append(self._made())
        for at, line in enumerate(self._lines):
            line.setVisible(at < len(pins))
            if at < len(pins):
                line.setPos(pins[at][0])
                line.label.setFormat(str(pins[at][1]))

    def _made(self) -> pg.InfiniteLine:
        line = pg.InfiniteLine(angle=90, movable=False, label="", labelOpts={"position": AT_TOP})
        line.setZValue(49)
        self._colour(line)
        self.plot.addItem(line, ignoreBounds=True)
        return line

    def _colour(self, line: pg.InfiniteLine) -> None:
        line.setPen(pg.mkPen(self.theme.accent, width=1, style=Qt.PenStyle.DashLine))
        line.label.setColor(self.theme.text)
        line.label.fill = pg.mkBrush(self.theme.base)
        line.label.border = pg.mkPen(self.theme.accent)
        line.label.update()
