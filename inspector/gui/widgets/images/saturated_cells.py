"""Marks on the cells of a map whose values are at the bound of their non-linearity: dots over the colours.

Each dot is black and white side by side, so that it is seen on every colour of every map, by every eye, and in both
themes; NaN and ±∞ keep colours of their own, and have no dots.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPixmap, QTransform

from inspector.gui.widgets.images.growing_image import arranged, draw_part
from inspector.gui.widgets.images.heatmap import Heatmap

Array = npt.NDArray[Any]
TILE, ASIDE = 17, 4
"""Pixels along a tile, and from the dot of a row of pixels to that of the next one. 17 = 4² + 1: the dots lie on a
square grid, √17 pixels apart, that is turned so far that each row and each column of pixels has one: no unit, however
few pixels it has, falls between them."""
MOST = 4096
"""Pixels along each side of what the dots are drawn into; on paper of a finer grid they are as much larger."""
ON = 0xFF000000


class SaturatedCells(Heatmap):
    """Lies over a map of the same array; `bounds` are the (low, high) beyond which a cell has dots."""

    bounds = (-np.inf, np.inf)

    def _colour(self, height: int, low: Array, high: Array) -> npt.NDArray[np.uint32]:
        """Where there are dots: of what the map shows in each of its cells."""
        values = arranged(low, high, self.levels, self._order, height)
        least, most = self.bounds
        beyond = np.isfinite(values) & ((values < least) | (values > most))
        return np.where(beyond, np.uint32(ON), np.uint32(0))

    def _draw(self, painter: QPainter, area: QRectF, image: QImage, source: QRectF) -> None:
        """Dots at the same distance at every zoom, cut out by the cells."""
        to_device, seen = painter.transform(), QRectF(painter.viewport())
        there = to_device.mapRect(area).intersected(seen) if not seen.isEmpty() else to_device.mapRect(area)
        if there.isEmpty():
            return
        shrunk = min(1.0, MOST / max(there.width(), there.height()))
        dots = QImage(
            max(1, round(there.width() * shrunk)), max(1, round(there.height() * shrunk)),
            QImage.Format.Format_ARGB32_Premultiplied,
        )  # fmt: skip
        dots.fill(Qt.GlobalColor.transparent)
        inner = QPainter(dots)
        inner.setTransform(
            to_device * QTransform.fromTranslate(-there.left(), -there.top()) * QTransform.fromScale(shrunk, shrunk)
        )
        draw_part(inner, area, image, source)
        inner.resetTransform()
        inner.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
        inner.fillRect(dots.rect(), dotted())
        inner.end()
        painter.save()
        painter.setWorldMatrixEnabled(False)
        painter.drawImage(there, dots)
        painter.restore()


@cache
def _tile() -> QImage:
    tile = QImage(TILE, TILE, QImage.Format.Format_ARGB32_Premultiplied)
    tile.fill(Qt.GlobalColor.transparent)
    for y in range(TILE):
        for aside, colour in ((1, "#000000"), (2, "#ffffff")):
            tile.setPixelColor((ASIDE * y + aside) % TILE, y, QColor(colour))
    return tile


def dotted() -> QBrush:
    """The dots, to fill any area with."""
    return QBrush(QPixmap.fromImage(_tile()))


def paint_key(painter: QPainter, box: QRectF, ground: QColor) -> None:
    """The small box of a legend."""
    painter.fillRect(box, ground)
    painter.save()
    painter.setBrushOrigin(QPointF(box.topLeft()))
    painter.fillRect(box, dotted())
    painter.restore()
