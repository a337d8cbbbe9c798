"""A word in every cell of a map that has room for one, in the text colour that contrasts with the cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.theme import BLACK, LIGHT, LIGHT_TEXT, MASKED, Theme, luminance
from inspector.gui.widgets.type_scale import small_points

LEAST_WIDTH = 13.0
"""Pixels of a cell below which it has no word: one letter and a margin."""
CLOSE = 0.9
"""The least height of a cell as a share of a line's: letters of two lines do not touch yet."""
BRIGHT = 0.179
"""Relative luminance of a cell from which black has a higher contrast than white: √(1.05 · 0.05) − 0.05 (WCAG 2.2)."""


class CellTexts(pg.GraphicsObject):  # type: ignore[misc]
    """`text(row, column)` in every cell (column j ± 0.5, row i ± 0.5), above a map of the same cells."""

    def __init__(self) -> None:
        super().__init__()
        self.theme: Theme = LIGHT
        self.text: Callable[[int, int], str] = lambda _row, _column: ""
        """The word of a cell."""
        self._bright: npt.NDArray[np.int8] = np.zeros((0, 0), np.int8)
        self.setZValue(60)  # above the lines of the cursor

    def set_texts(
        self, text: Callable[[int, int], str], colours: npt.NDArray[np.uint8], table: npt.NDArray[np.uint32]
    ) -> None:
        """Other words, over cells whose colours (row, column) are indices of a table."""
        light = np.array([luminance(int(colour) & 0xFFFFFF) for colour in table])
        self.text = text
        self._bright = np.where(colours == MASKED, -1, light[colours] >= BRIGHT).astype(np.int8)
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """All cells."""
        rows, columns = self._bright.shape
        return QRectF(-0.5, -0.5, columns, rows)

    def ink(self, row: int, column: int) -> str:
        """The colour of a word; where its cell is empty, that of all texts."""
        bright = self._bright[row, column]
        return self.theme.text if bright < 0 else BLACK if bright else LIGHT_TEXT

    @staticmethod
    def _fonts(painter: QPainter) -> tuple[QFont, QFont]:
        """The usual one, and a smaller one for rows that it would run together in."""
        small = QFont(painter.font())
        small.setPointSizeF(min(small_points(), small.pointSizeF()) if small.pointSizeF() > 0 else small_points())
        return painter.font(), small

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The words of the cells in view, none where a cell is too small."""
        view: Any = self.getViewBox()
        if view is None or not self._bright.size:
            return
        to_scene = self.sceneTransform()
        cell = to_scene.mapRect(QRectF(0, 0, 1, 1))
        font = next((one for one in self._fonts(painter) if cell.height() >= CLOSE * QFontMetricsF(one).height()), None)
        if cell.width() < LEAST_WIDTH or font is None:
            return
        metrics = QFontMetricsF(font)
        (left, right), (top, bottom) = (sorted(one) for one in view.viewRange())
        rows, columns = self._bright.shape
        inverse, _ = to_scene.inverted()
        painter.save()
        painter.setFont(font)
        painter.setWorldTransform(inverse * painter.worldTransform())
        for row in range(max(0, round(top)), min(rows, round(bottom) + 1)):
            for column in range(max(0, round(left)), min(columns, round(right) + 1)):
                box = to_scene.mapRect(QRectF(column - 0.5, row - 0.5, 1, 1))
                word = metrics.elidedText(self.text(row, column), Qt.TextElideMode.ElideRight, box.width() - 2)
                painter.setPen(QColor(self.ink(row, column)))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word)
        painter.restore()
