"""Pins in a map: a square around each pinned cell, with its number beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg

from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

BESIDE = (-0.6, 0.5)
"""The anchor of a number right of its cell, at its height."""
RIGHT = 1.6
"""Widths of a number that it needs right of its cell."""
SIZE = 11
"""Pixels of a square: it is seen where a cell is smaller than a pixel."""


class CellNumber(pg.TextItem):  # type: ignore[misc]
    """The number of a pinned cell, right of it; moved inwards where it would be cut at an edge of the plot."""

    cell: tuple[float, float] = (0.0, 0.0)
    """(x, y) in the plot."""

    def __init__(self) -> None:
        super().__init__(anchor=BESIDE)

    def viewTransformChanged(self) -> None:
        """The plot has another range or size."""
        super().viewTransformChanged()
        self.keep_inside()

    def keep_inside(self) -> None:
        """Choose at which of its corners the number hangs."""
        box = self.getViewBox()
        if not isinstance(box, pg.ViewBox):  # where it is in none, pyqtgraph gives the figure
            return
        at = box.mapFromView(pg.Point(*self.cell))
        half = self.boundingRect().height() / 2
        across = BESIDE[0] if at.x() + RIGHT * self.boundingRect().width() <= box.width() else 1.0 - BESIDE[0]
        down = 0.0 if at.y() < half else 1.0 if at.y() > box.height() - half else BESIDE[1]
        if (across, down) != (self.anchor.x(), self.anchor.y()):
            self.setAnchor((across, down))


class PinCells:
    """The pinned cells of one plot, made when the first is shown."""

    def __init__(self, plot: Any) -> None:
        self.plot = plot
        self.shown: tuple[tuple[float, float, int], ...] = ()
        """(x, y, number) of each."""
        self._last: tuple[Any, Theme | None] = ((), None)
        self._squares: pg.ScatterPlotItem | None = None
        self._numbers: list[pg.TextItem] = []

    def show(self, cells: Sequence[tuple[float, float, int]], theme: Theme) -> None:
        """These cells, and no others, in the colours of a theme."""
        if (tuple(cells), theme) == self._last or (not cells and self._squares is None):
            return
        self._last = (tuple(cells), theme)
        if isinstance(self.plot, StepPlot):
            self.plot.number_pins_at_cells(frozenset(number for *_, number in cells))
        if self._squares is None:
            self._squares = pg.ScatterPlotItem(size=SIZE, symbol="s", brush=None)
            self._squares.setZValue(55)
            self.plot.addItem(self._squares, ignoreBounds=True)
        self.shown = tuple(cells)
        self._squares.setPen(pg.mkPen(theme.cursor, width=2))
        self._squares.setData(x=[x for x, _, _ in cells], y=[y for _, y, _ in cells])
        while len(self._numbers) < len(cells):
            self._numbers.append(self._number())
        for at, text in enumerate(self._numbers):
            text.setVisible(at < len(cells))
            if at < len(cells):
                x, y, number = cells[at]
                text.cell = (x, y)
                text.setPos(x, y)
                text.setText(str(number), theme.text)
                text.fill = pg.mkBrush(theme.base)
                text.border = pg.mkPen(theme.cursor)
                text.keep_inside()
                text.update()

    def _number(self) -> pg.TextItem:
        text = CellNumber()
        text.setZValue(56)
        self.plot.addItem(text, ignoreBounds=True)
        return text
