"""Pins in a plot: a dashed line at each, with its number at the top, below those that it would cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt

from inspector.gui.widgets.theme import LIGHT, Theme

BELOW_THE_EDGE = ((0, 0), (1, 0))
"""Anchors of a number that hangs from the upper edge, right or left of its line: whole in a plot of any height."""


class PinNumber(pg.InfLineLabel):  # type: ignore[misc]
    """The number of a pin, at the upper edge of the plot whichever way its vertical axis runs."""

    row = 0
    """Numbers that hang above this one."""
    beside: PinLines | None = None
    """Those of the plot, which are told that this one has moved."""

    def updatePosition(self) -> None:
        """Called when the view has changed."""
        box = self.line.getViewBox()
        self.orthoPos = 0.0 if isinstance(box, pg.ViewBox) and box.yInverted() else 1.0
        super().updatePosition()
        self.hang(self.row)
        if self.beside is not None:
            self.beside.stack()

    def hang(self, row: int) -> None:
        """Below so many others."""
        self.row = row
        self.setAnchor((self.anchor.x(), -row))

    def span(self, at: float) -> tuple[float, float]:
        """(left, right) in pixels of the scene, for a line at a place of the axis."""
        vb = self.line.getViewBox()
        edge, width = vb.mapViewToScene(QPointF(at, 0.0)).x(), self.boundingRect().width()
        return (edge - width, edge) if self.anchor.x() else (edge, edge + width)


class PinLines:
    """The lines of one plot, made when they are needed first."""

    def __init__(self, plot: Any) -> None:
        self.plot, self.theme = plot, LIGHT
        self.shown: tuple[tuple[int, int], ...] = ()
        """(step, number) of each."""
        self._lines: list[pg.InfiniteLine] = []
        self._elsewhere: frozenset[int] = frozenset()

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
        self._number()

    def leave_out(self, numbers: frozenset[int]) -> None:
        """Numbers that stand at a cell of the plot, and not at its line too."""
        if numbers != self._elsewhere:
            self._elsewhere = numbers
            self._number()

    def _number(self) -> None:
        for line, (_, number) in zip(self._lines, self.shown, strict=False):
            line.label.setVisible(number not in self._elsewhere)
        self.stack()

    def stack(self) -> None:
        """Numbers that would cover each other hang below each other, as many as the plot has room for."""
        rows: list[list[tuple[float, float]]] = []
        for line, (at, number) in zip(self._lines, self.shown, strict=False):
            label = line.label
            if number in self._elsewhere or not isinstance(line.getViewBox(), pg.ViewBox):
                continue
            left, right = label.span(at)
            free = (n for n, row in enumerate(rows) if all(right <= low or high <= left for low, high in row))
            most = max(1, int(self.plot.vb.height() / label.boundingRect().height()))
            row = min(next(free, len(rows)), most - 1)
            rows += [[] for _ in range(len(rows), row + 1)]
            rows[row].append((left, right))
            if row != label.row:
                label.hang(row)

    def _made(self) -> pg.InfiniteLine:
        line = pg.InfiniteLine(angle=90, movable=False)
        line.label = PinNumber(line, anchors=BELOW_THE_EDGE)
        line.label.beside = self
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
