"""A plot of a map whose axes count the same things: with equal sides it is a square, as large as there is room for."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from shiboken6 import isValid

from inspector.gui.widgets.plots.stepplot import StepPlot

UNLIMITED = 16_777_215.0
LEAST = 40.0
"""Pixels of a side below which nothing is read."""
FIRST = 1000
"""Stretch of the map: the space beside it has what the map leaves."""


class SquarePlot(StepPlot):
    """`set_square(on)` and `set_shape(columns, rows)`; `within` is the layout that it shares with its colour bar."""

    same_axes = True

    def lie_in(self, within: Any) -> None:
        """Be laid out in the first column of a layout, with a colour bar in the second."""
        self._within, self._square, self._shape = within, True, (1, 1)
        self.vb.both = True
        rest = pg.GraphicsWidget()
        rest.setPreferredWidth(0)
        within.layout.setContentsMargins(0, 0, 0, 0)
        within.addItem(rest, row=0, col=2)
        within.layout.setColumnStretchFactor(0, FIRST)
        within.layout.setColumnStretchFactor(2, 1)
        within.geometryChanged.connect(self.fit_sides)
        self.vb.sigResized.connect(self.fit_sides)

    def set_square(self, on: bool) -> None:
        """Equal sides, or as much room as there is."""
        if on != self._square:
            self._square = self.vb.both = on
            self.fit_sides()

    def set_shape(self, columns: int, rows: int) -> None:
        """How many cells there are: a cell is as wide as it is high."""
        if (columns, rows) != self._shape:
            self._shape = (max(1, columns), max(1, rows))
            self.fit_sides()

    def fit_sides(self, *_: object) -> None:
        """Be no larger than the square that fits."""
        if not isValid(self._within):
            return  # a figure that ends lays out its plots once more, without the layouts that are gone
        width = height = UNLIMITED
        if self._square:
            room, beside = self._within.rect(), self._within.layout.itemAt(0, 1)
            bar = beside.maximumWidth() + self._within.layout.horizontalSpacing() * 2 if beside is not None else 0.0
            around = (self.size().width() - self.vb.width(), self.size().height() - self.vb.height())
            across, down = room.width() - bar - around[0], room.height() - around[1]
            cell = min(across / self._shape[0], down / self._shape[1])
            width, height = max(LEAST, cell * self._shape[0]) + around[0], max(LEAST, cell * self._shape[1]) + around[1]
        if abs(width - self.maximumWidth()) > 1 or abs(height - self.maximumHeight()) > 1:
            self.setMaximumSize(width, height)
            self.setPreferredSize(*((width, height) if self._square else (-1.0, -1.0)))
            bar = self._within.layout.itemAt(0, 1)
            if bar is not None:
                bar.setMaximumHeight(height)
