"""An input as a picture, with the part of it that is the step under the cursor framed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainterPath
from PySide6.QtWidgets import QGraphicsPathItem

from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
COLOURS = 3
"""Channels of a picture in colours."""


class Pixels:
    """A map with square cells, or a picture of three colours, and a frame around some of its cells."""

    def __init__(self, figure: Any, row: int, theme: Theme) -> None:
        self.row = MapRow(figure, row, None, theme, label="row", bottom="column")
        self.plot, self.bar = self.row.plot, self.row.bar
        self.plot.vb.setAspectLocked(True)
        self.plot.vb.setMouseEnabled(x=True, y=True)
        self.coloured = pg.ImageItem(axisOrder="row-major")
        self.coloured.hide()
        self.plot.addItem(self.coloured)
        self.frame = QGraphicsPathItem()
        self.frame.setZValue(60)
        self.plot.addItem(self.frame, ignoreBounds=True)
        self._size = (1, 1)
        self._zoomed = False
        self.plot.vb.sigRangeChangedManually.connect(self._zoom)
        self.plot.vb.sigResized.connect(self._resized)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.frame.setPen(pg.mkPen(theme.cursor, width=2))

    def show(self, values: Array, levels: Levels, unit: str, gaps: Gaps = NONE) -> None:
        """A picture (row, column) of one number each."""
        self.coloured.hide()
        self.row.map.show()
        seen = self.plot.vb.viewRange()
        self.row.show_array(values.T, levels, unit, gaps=gaps)
        self.plot.vb.setRange(xRange=seen[0], yRange=seen[1], padding=0)
        self._fit(values.shape[0], values.shape[1])

    def show_colours(self, values: Array, low: float, high: float) -> None:
        """A picture (colour, row, column) whose numbers from `low` to `high` are the shares of red, green and blue."""
        share = (values.astype(np.float64) - low) / (high - low or 1.0)
        shown = np.nan_to_num(np.clip(share, 0, 1) * 255, nan=0.0).astype(np.uint8)
        self.coloured.setImage(np.moveaxis(shown, 0, -1), levels=None)
        self.coloured.setRect(QRectF(-0.5, -0.5, values.shape[2], values.shape[1]))
        self.coloured.show()
        self.row.map.hide()
        self._fit(values.shape[1], values.shape[2])

    def _fit(self, rows: int, columns: int) -> None:
        if (rows, columns) != self._size or not self._zoomed:
            self._size = (rows, columns)
            self.show_whole()

    def _zoom(self, *_: object) -> None:
        self._zoomed = True

    def _resized(self, *_: object) -> None:
        """With square cells another size of the plot shows another part, so the whole is asked for again."""
        if not self._zoomed:
            self.show_whole()

    def show_whole(self) -> None:
        """The whole picture."""
        self._zoomed = False
        rows, columns = self._size
        self.plot.vb.setRange(xRange=(-0.5, columns - 0.5), yRange=(-0.5, rows - 0.5), padding=0)

    def mark(self, boxes: list[tuple[float, float, float, float]]) -> None:
        """Frame these parts, (first column, first row, columns, rows) each, as one outline."""
        path = QPainterPath()
        for left, top, across, down in boxes:
            path.addRect(QRectF(left - 0.5, top - 0.5, across, down))
        self.frame.setPath(path.simplified())


def boxes_of(first: int, stop: int, columns: int) -> list[tuple[float, float, float, float]]:
    """The cells from `first` to `stop` of a picture that is written row by row, as boxes."""
    found = []
    while first < stop:
        row, column = divmod(first, columns)
        whole = (stop - first) // columns if column == 0 else 0
        many = whole * columns if whole else min(columns - column, stop - first)
        found.append((float(column), float(row), float(min(many, columns)), float(max(1, whole))))
        first += many
    return found
