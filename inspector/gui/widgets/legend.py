"""A legend above its plot, never over its curves: a sample and a name for each line, in as many rows as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from pyqtgraph.graphicsItems.ScatterPlotItem import drawSymbol
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.widgets.type_scale import small_points

SAMPLE, GAP, ROW = 18.0, 14.0, 17.0
"""Widths of a sample and of the space after a name, and the height of a row, in pixels."""
MOST_ROWS = 3
LONGEST = 60
ROW_ABOVE = 1
"""The row of a plot's layout between its title and its curves."""


class Legend(pg.GraphicsObject):  # type: ignore[misc]
    """Names of curves, between the title of a plot and its curves. Names are plain text."""

    def __init__(self, plot: Any, lines: Sequence[Any] = (), names: Sequence[str] = (), theme: Theme = LIGHT) -> None:
        super().__init__()
        self.plot, self.theme = plot, theme
        self.entries: list[tuple[Any, str]] = []
        self._places: list[QPointF] = []
        self._area = QRectF()
        self._font = QFont()
        self._font.setPointSizeF(small_points())
        self.setParentItem(plot)
        plot.vb.sigResized.connect(self._arrange)
        for line, name in zip(lines, names, strict=True):
            self.addItem(line, name)

    def addItem(self, line: Any, name: str) -> None:
        """One more curve or scatter, and its name."""
        self.entries.append((line, clean(name)[:LONGEST]))
        self._arrange()

    def removeItem(self, line: Any) -> None:
        """Remove one."""
        self.entries = [entry for entry in self.entries if entry[0] is not line]
        self._arrange()

    def clear(self) -> None:
        """Remove all."""
        self.entries = []
        self._arrange()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        if self._font.pointSizeF() != small_points():
            self._font.setPointSizeF(small_points())
            self._arrange()
        self.update()

    def _arrange(self, *_: object) -> None:
        """Flow the entries into rows as wide as the plot, and reserve space for the rows."""
        metrics = QFontMetricsF(self._font)
        box = self.plot.vb.geometry()
        self.prepareGeometryChange()
        self._places, x, row = [], 0.0, 0
        for _, name in self.entries:
            width = SAMPLE + metrics.horizontalAdvance(name) + GAP
            if x and x + width - GAP > box.width() and row < MOST_ROWS - 1:
                x, row = 0.0, row + 1
            self._places.append(QPointF(x, row * ROW))
            x += width
        height = (row + 1) * ROW + 2 if self.entries else 0.0
        self._area = QRectF(0, 0, max(0.0, box.width()), height)
        self.setPos(box.left(), box.top() - height)
        if self.plot.layout.rowMaximumHeight(ROW_ABOVE) != height:
            self.plot.layout.setRowFixedHeight(ROW_ABOVE, height)
        self.update()

    def boundingRect(self) -> QRectF:
        """The rows, as wide as the plot."""
        return self._area

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """A piece of each line and its name; what does not fit into the last row is cut."""
        painter.setFont(self._font)
        painter.setClipRect(self._area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for (line, name), place in zip(self.entries, self._places, strict=True):
            self._sample(painter, line.opts, place + QPointF(0, ROW / 2))
            painter.setPen(QColor(self.theme.text))
            room = QRectF(place.x() + SAMPLE + 3, place.y(), self._area.width(), ROW)
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), name)

    def _sample(self, painter: QPainter, look: Any, middle: QPointF) -> None:
        if look.get("pen") is not None and look.get("connect") is not None:
            painter.setPen(pg.mkPen(look["pen"]))
            painter.drawLine(middle + QPointF(2, 0), middle + QPointF(SAMPLE, 0))
        elif look.get("symbol") is not None:
            painter.save()
            painter.translate(middle + QPointF(SAMPLE / 2, 0))
            brush = look.get("brush") if "brush" in look else look.get("symbolBrush")
            drawSymbol(painter, look["symbol"], 8, pg.mkPen(None), pg.mkBrush(brush))
            painter.restore()
