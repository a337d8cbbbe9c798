"""Thumbnails of many maps as one image: 144 heads cost one drawing, not 144."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QGraphicsSceneMouseEvent, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import Gaps, Rect
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LAST, LIGHT, MASKED, NOT_A_NUMBER, Theme, colour_table

Array = npt.NDArray[Any]
CELL, GAP = 48, 4
HEADER = 20.0


def thumbnail(weights: Array, size: int = CELL) -> npt.NDArray[np.uint8]:
    """A map (query, key) as (size, size) colour indices on a square-root scale; maxima of each cell, NaN preserved.

    −∞ is a masked key; a cell is masked where all of its keys are.
    """
    rows, columns = (_starts(n, size) for n in weights.shape)
    small = np.maximum.reduceat(np.maximum.reduceat(weights, rows, axis=0), columns, axis=1)
    with np.errstate(invalid="ignore"):
        index = np.sqrt(np.clip(small.astype(np.float32), 0, 1)) * LAST
    bad = np.isnan(small)
    index = np.where(bad, NOT_A_NUMBER, np.nan_to_num(index)).astype(np.uint8)
    index[np.isneginf(small)] = MASKED
    picture: npt.NDArray[np.uint8] = index[_spread(len(rows), size)][:, _spread(len(columns), size)]
    return picture


def _starts(length: int, size: int) -> npt.NDArray[np.intp]:
    return np.arange(0, length, max(1, -(-length // size)))


def _spread(length: int, size: int) -> npt.NDArray[np.intp]:
    return (np.arange(size) * length) // size


def _within(cell: QRectF, rects: Sequence[Rect], size: tuple[int, int]) -> list[QRectF]:
    """Rectangles of a map of (keys, queries) within its thumbnail, at least a pixel each."""
    across, down = (length / max(1, n) for length, n in zip((cell.width(), cell.height()), size, strict=True))
    return [
        QRectF(cell.left() + a * across, cell.top() + c * down, max(1.0, (b - a) * across), max(1.0, (d - c) * down))
        for (a, b), (c, d) in rects
    ]


class Atlas(pg.GraphicsWidget):  # type: ignore[misc]
    """A grid of thumbnails, one row for each layer and one column for each head. `chosen(row, column)` on a click."""

    chosen = Signal(int, int)

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._names: list[str] = []
        self._gaps: dict[tuple[int, int], tuple[Gaps, tuple[int, int]]] = {}
        self._image: QImage | None = None
        self._shape = (0, 0)
        self._selected = (0, 0)
        self.setMinimumWidth(120)

    def set_maps(
        self,
        names: list[str],
        rows: list[list[npt.NDArray[np.uint8]]],
        gaps: Mapping[tuple[int, int], tuple[Gaps, tuple[int, int]]] | None = None,
    ) -> None:
        """`rows[layer][head]` are thumbnails; `names` the layers; `gaps` (layer, head) → (what is not known of the map,
        its numbers of keys and of queries)."""
        self._names, self._gaps = names, dict(gaps or {})
        columns = max((len(row) for row in rows), default=0)
        self._shape = (len(rows), columns)
        pitch = CELL + GAP
        sheet = np.zeros((max(1, len(rows) * pitch), max(4, -(-columns * pitch // 4) * 4)), np.uint8)
        cover = np.zeros_like(sheet, dtype=bool)
        for i, row in enumerate(rows):
            for j, picture in enumerate(row):
                cut = (slice(i * pitch, i * pitch + CELL), slice(j * pitch, j * pitch + CELL))
                sheet[cut], cover[cut] = picture, True
        image = QImage(sheet.data, sheet.shape[1], sheet.shape[0], sheet.shape[1], QImage.Format.Format_Indexed8)
        table = [int(colour) for colour in colour_table("attention")]
        image.setColorTable(table)
        argb = image.convertToFormat(QImage.Format.Format_ARGB32)
        pixels = np.frombuffer(argb.bits(), np.uint32).reshape(sheet.shape)
        pixels[~cover] = 0
        self._image = argb.copy()
        self.update()

    def select(self, row: int, column: int) -> None:
        """Frame one thumbnail."""
        if (row, column) != self._selected:
            self._selected = (row, column)
            self.update()

    def _cell(self) -> float:
        """Side of a thumbnail with its gap, in scene units, so that the grid fits."""
        rows, columns = self._shape
        area = self.boundingRect()
        fitting = min((area.width() - 8) / max(1, columns), (area.height() - HEADER * 2) / max(1, rows), 96.0)
        return max(6.0, float(fitting))

    def cell_at(self, row: int, column: int) -> QRectF:
        """Where a thumbnail is drawn, without its gap."""
        side = self._cell()
        inner = side * CELL / (CELL + GAP)
        return QRectF(4 + column * side, HEADER + row * side, inner, inner)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """One image, the names of the layers where there is room, and the frame of the chosen head."""
        rows, columns = self._shape
        if self._image is None or not rows or not columns:
            return
        side = self._cell()
        pitch = CELL + GAP
        target = QRectF(4, HEADER, side * columns, side * rows)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, side < pitch * 0.75)
        painter.drawImage(target, self._image, QRectF(0, 0, columns * pitch, rows * pitch))
        for (row, column), (gaps, size) in self._gaps.items():
            cell = QRectF(4 + column * side, HEADER + row * side, side * CELL / pitch, side * CELL / pitch)
            paint_gaps(painter, self.theme, *(_within(cell, rects, size) for rects in (gaps.missing, gaps.damaged)))
        painter.setPen(QColor(self.theme.muted))
        row, column = self._selected
        name = self._names[row] if row < len(self._names) else ""
        painter.drawText(QRectF(4, 0, self.boundingRect().width(), HEADER), 0, f"{clean(name)}, head {column}")
        pen = pg.mkPen(self.theme.cursor, width=2)
        painter.setPen(pen)
        painter.drawRect(self.cell_at(row, column).adjusted(-1, -1, 1, 1))

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """A click chooses a head."""
        side = self._cell()
        column, row = int((event.pos().x() - 4) // side), int((event.pos().y() - HEADER) // side)
        if event.button() == Qt.MouseButton.LeftButton and 0 <= row < self._shape[0] and 0 <= column < self._shape[1]:
            self.chosen.emit(row, column)
            event.accept()
