"""A map that is zoomed along both of its axes, drawn as one image of the cells in view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.images.colour_choice import chosen
from inspector.gui.widgets.images.growing_image import coloured
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.images.range_in_view import Ends, RangeInView, touched, without_gaps
from inspector.gui.widgets.theme import LIGHT, Theme

Array = npt.NDArray[Any]
Rect = tuple[float, float, float, float]
"""(first column, first row, columns, rows)."""
Look = Callable[[Rect, tuple[int, int]], tuple[Array, Rect]]
"""(what is in view, pixels across and down) → (cells (row, column), what they cover)."""


class CellMap(pg.GraphicsObject):  # type: ignore[misc]
    """Columns along x, rows along y: cell (column j, row i) covers x from j − 0.5 to j + 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self._look: Look | None = None
        self._size = (0, 0)
        self._levels = Levels(0.0, 1.0)
        self._gaps = NONE
        self._revision: Any = None
        self._cache: tuple[Any, QImage] | None = None
        self.theme: Theme = LIGHT
        self.in_view = RangeInView(self, self._parts_in_view)

    def set_source(self, look: Look, size: tuple[int, int], levels: Levels, revision: Any, gaps: Gaps = NONE) -> None:
        """Show another map of (columns, rows), or the same one with more in it, which has another `revision`."""
        if size != self._size:
            self.prepareGeometryChange()
            self._size = size
        self._look, self._levels, self._revision, self._gaps = look, levels, revision, gaps
        self._cache = None
        self.in_view.others()
        self.update()

    @property
    def given(self) -> Levels:
        """The colours that the panel draws where nothing is chosen."""
        return self._levels

    @property
    def levels(self) -> Levels:
        """The colours that are drawn: the given ones with what the user has chosen."""
        return chosen(self, self.in_view.told(self._levels))

    def viewTransformChanged(self) -> None:
        """Zoomed, moved, or of another size."""
        super().viewTransformChanged()
        self.in_view.moved()

    def _seen(self) -> QRectF:
        area = self.boundingRect()
        return (self.viewRect() if self.getViewBox() is not None else area).intersected(area)

    def _parts_in_view(self) -> Iterator[Ends]:
        """The cells that are drawn, cut to those of which a part is in view, NaN where they are covered."""
        seen, view = self._seen(), self.getViewBox()
        if self._look is None or seen.isEmpty() or view is None:
            return
        pixels = tuple(
            _pixels(size * part / max(1e-9, whole))
            for size, part, whole in (
                (view.width(), seen.width(), self.viewRect().width()),
                (view.height(), seen.height(), self.viewRect().height()),
            )
        )
        cells, (left, top, across, down) = self._look(
            (seen.left() + 0.5, seen.top() + 0.5, seen.width(), seen.height()), (pixels[0], pixels[1])
        )
        rows, columns = cells.shape
        wide, high = across / max(1, columns), down / max(1, rows)
        found = without_gaps(cells, (*self._gaps.missing, *self._gaps.damaged), (left, top), (wide, high))
        across_view = touched(seen.left() + 0.5, seen.right() + 0.5, left, wide, columns)
        down_view = touched(seen.top() + 0.5, seen.bottom() + 0.5, top, high, rows)
        part = found[slice(*down_view), slice(*across_view)]
        yield part, part

    def boundingRect(self) -> QRectF:
        """All cells."""
        return QRectF(-0.5, -0.5, max(1, self._size[0]), max(1, self._size[1]))

    def dataBounds(self, axis: int, frac: float = 1.0, orthoRange: Any = None) -> tuple[float, float]:
        """The range that automatic zooming shows."""
        return (-0.5, max(1, self._size[axis]) - 0.5)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Colour the cells in view, no more of them than there are pixels, and draw them as one image."""
        if widget is None:
            self.in_view.told(self._levels, at_once=True)
        area, seen = self.boundingRect(), self._seen()
        if self._look is None or seen.isEmpty():
            return
        device = painter.deviceTransform()
        pixels = (_pixels(device.m11() * seen.width()), _pixels(device.m22() * seen.height()))
        cells, (left, top, across, down) = self._look(
            (seen.left() + 0.5, seen.top() + 0.5, seen.width(), seen.height()), pixels
        )
        image = self._image(cells, (left, top, across, down))
        painter.save()
        # within what the plot clips to: a zoomed map has more cells than fit
        painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
        if self._levels.masked:
            painter.fillRect(seen, QColor(self.theme.masked))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(QRectF(left - 0.5, top - 0.5, across, down), image)
        if self._gaps:
            paint_gaps(painter, self.theme, *(_boxes(rects) for rects in (self._gaps.missing, self._gaps.damaged)))
        painter.restore()

    def _image(self, cells: Array, covered: Rect) -> QImage:
        """The cells as colours; the last ones again where nothing has changed."""
        levels = self.levels
        key = (covered, cells.shape, self._revision, levels)
        if self._cache is None or self._cache[0] != key:
            found = np.ascontiguousarray(coloured(cells, levels, levels.table))
            rows, columns = found.shape
            image = QImage(found.data, columns, rows, 4 * columns, QImage.Format.Format_ARGB32_Premultiplied)
            self._cache = (key, image.copy())
        return self._cache[1]


def _pixels(length: float) -> int:
    return max(16, min(4096, int(abs(length)) + 1))


def _boxes(rects: Any) -> list[QRectF]:
    return [QRectF(a - 0.5, c - 0.5, b - a, d - c) for (a, b), (c, d) in rects]
