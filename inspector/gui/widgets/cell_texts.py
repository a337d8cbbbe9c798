"""A word in every cell of a map that has room for one, in the text colour that contrasts with the cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.theme import LIGHT, MASKED, Theme, colour_table

LEAST_WIDTH = 13.0
"""Pixels of a cell below which it has no word: one letter and a margin."""
BRIGHT = 140.0
"""Luma (ITU-R BT.601, 0 to 255) of a cell from which its word is black; below the middle grey 128 white is easier to
read, above it black. Counter-example: on saturated red of the same luma both are hard to read."""
DARK_INK, LIGHT_INK = "#101010", "#ffffff"


class CellTexts(pg.GraphicsObject):  # type: ignore[misc]
    """`text(row, column)` in every cell (column j ± 0.5, row i ± 0.5), above a map of the same cells."""

    def __init__(self) -> None:
        super().__init__()
        self.theme: Theme = LIGHT
        self._text: Callable[[int, int], str] = lambda _row, _column: ""
        self._bright: npt.NDArray[np.int8] = np.zeros((0, 0), np.int8)
        self.setZValue(60)  # above the lines of the cursor

    def set_texts(self, text: Callable[[int, int], str], colours: npt.NDArray[np.uint8], scale: str) -> None:
        """Other words, over cells whose colours (row, column) are indices of the colour table of a scale."""
        table = colour_table(scale).astype(np.int64)
        luma = 0.299 * (table >> 16 & 255) + 0.587 * (table >> 8 & 255) + 0.114 * (table & 255)
        self._text = text
        self._bright = np.where(colours == MASKED, -1, luma[colours] >= BRIGHT).astype(np.int8)
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """All cells."""
        rows, columns = self._bright.shape
        return QRectF(-0.5, -0.5, columns, rows)

    def ink(self, row: int, column: int) -> str:
        """The colour of a word; where its cell is empty, that of all texts."""
        bright = self._bright[row, column]
        return self.theme.text if bright < 0 else DARK_INK if bright else LIGHT_INK

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The words of the cells in view, none where a cell is too small."""
        view: Any = self.getViewBox()
        if view is None or not self._bright.size:
            return
        to_scene = self.sceneTransform()
        cell = to_scene.mapRect(QRectF(0, 0, 1, 1))
        metrics = QFontMetricsF(painter.font())
        if cell.width() < LEAST_WIDTH or cell.height() < metrics.height():
            return
        (left, right), (top, bottom) = (sorted(one) for one in view.viewRange())
        rows, columns = self._bright.shape
        inverse, _ = to_scene.inverted()
        painter.save()
        painter.setWorldTransform(inverse * painter.worldTransform())
        for row in range(max(0, round(top)), min(rows, round(bottom) + 1)):
            for column in range(max(0, round(left)), min(columns, round(right) + 1)):
                box = to_scene.mapRect(QRectF(column - 0.5, row - 0.5, 1, 1))
                word = metrics.elidedText(self._text(row, column), Qt.TextElideMode.ElideRight, box.width() - 2)
                painter.setPen(QColor(self.ink(row, column)))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word)
        painter.restore()
