"""A heatmap drawn as one 8-bit image of what is in view, at any size of the data behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, QTimer
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import NONE, Gaps, Rect, in_order
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.images.colour_choice import chosen
from inspector.gui.widgets.images.growing_image import (
    GrowingImage,
    Overview,
    arranged,
    cell_width,
    coloured,
    draw_part,
    parts_of,
)  # fmt: skip
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.images.range_in_view import Ends, RangeInView, without_gaps
from inspector.gui.widgets.theme import LIGHT, Theme

Array = npt.NDArray[Any]
Changes = Callable[[Any], tuple[int, Any]]
"""What was seen (None: nothing) → (the first column that may differ from it, what is seen now)."""

Picture = tuple[QImage, QRectF, tuple[int, int]]
"""An image, the part of it that is drawn, the columns that it covers."""


class Heatmap(pg.GraphicsObject):  # type: ignore[misc]
    """Columns along x (steps), rows along y. `overview((first, stop), cells)` gives minima and maxima of what is in
    view.

    Cell (column j, row i) covers x from j − 0.5 to j + 0.5 and y from i − 0.5 to i + 0.5.
    """

    def __init__(self) -> None:
        super().__init__()
        self._overview: Overview | None = None
        self._columns = self._rows = 0
        self._levels = Levels(0.0, 1.0)
        self._order: npt.NDArray[np.intp] | None = None
        self._revision = 0
        self._cache: tuple[Any, QImage] | None = None
        self._changes: Changes | None = None
        self._seen_last: Any = None
        self._growing = GrowingImage()
        self._gaps = NONE
        self._covers: tuple[list[Rect], list[Rect]] = ([], [])
        self.theme: Theme = LIGHT
        self.in_view = RangeInView(self, self._parts_in_view)

    def set_source(
        self,
        overview: Overview,
        columns: int,
        rows: int,
        levels: Levels,
        revision: int,
        gaps: Gaps = NONE,
        changes: Changes | None = None,
    ) -> None:
        """Show another array, or the same one grown. `rows` is its number of units, `columns` of steps; `gaps` are the
        cells that are not known. With `changes` only what is new is read and coloured when it is drawn next; the
        overview then divides a range evenly into as many cells as are asked for."""
        if (columns, rows) != (self._columns, self._rows):
            self.prepareGeometryChange()
            self._columns, self._rows = columns, rows
        self._overview, self._levels, self._revision, self._changes = overview, levels, revision, changes
        self._cache = None
        self._gaps = gaps
        self._arrange()
        self.in_view.others()
        self.update()

    def forget(self) -> None:
        """Colour everything anew: the same array is to be shown in another way."""
        self._growing.forget()
        self._cache = None
        self.in_view.others()

    def set_array(self, values: Array, levels: Levels) -> None:
        """Show a small array (column, row) that is wholly in memory."""
        self.set_source(lambda cut, _cells: (values[slice(*cut)],) * 2, values.shape[0], values.shape[1], levels, 0)

    @property
    def given(self) -> Levels:
        """The colours that the panel draws where nothing is chosen."""
        return self._levels

    @property
    def levels(self) -> Levels:
        """The colours that are drawn: the given ones with what the user has chosen."""
        return chosen(self, self.in_view.told(self._levels))

    def set_order(self, order: npt.NDArray[np.intp] | None) -> None:
        """Draw rows in this order: row i on screen is unit order[i]."""
        self._order = order
        self._cache = None
        self._arrange()
        self.in_view.others()
        self.update()

    def _arrange(self) -> None:
        """The gaps where their rows are drawn."""
        order = self._order if self._order is not None and len(self._order) == self._rows else None
        self._covers = in_order(self._gaps.missing, order), in_order(self._gaps.damaged, order)

    @property
    def order(self) -> npt.NDArray[np.intp] | None:
        """The order of rows, or None for as they are."""
        return self._order

    def boundingRect(self) -> QRectF:
        """The whole array in plot coordinates."""
        return QRectF(-0.5, -0.5, max(1, self._columns), max(1, self._rows))

    def dataBounds(self, axis: int, frac: float = 1.0, orthoRange: Any = None) -> tuple[float, float]:
        """The range that automatic zooming shows."""
        return (-0.5, max(1, (self._columns, self._rows)[axis]) - 0.5)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Quantise what is in view to the pixels there are, and draw it as one image."""
        if self._overview is None or not self._columns or not self._rows:
            return
        if widget is None:
            self.in_view.told(self._levels, at_once=True)
        first, stop = self._columns_in(self._seen_rect())
        device = painter.deviceTransform()
        cells = max(16, min(4096, int(abs(device.m11()) * (stop - first)) + 1))
        height = max(16, min(4096, int(abs(device.m22()) * self._rows) + 1))
        if self._changes:
            picture = self._grown(first, stop, cells, height, in_turns=widget is not None)
        else:
            picture = self._whole(first, stop, cells, height)
        image, source, (left, right) = picture
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        area = QRectF(left - 0.5, -0.5, right - left, self._rows)
        if self._levels.masked:
            painter.fillRect(area, QColor(self.theme.masked))
        self._draw(painter, area, image, source)
        if self._gaps:
            cell = (right - left) / max(1.0, source.width())
            paint_gaps(painter, self.theme, *(self._seen(rects, left, right, cell) for rects in self._covers))

    def viewTransformChanged(self) -> None:
        """Zoomed, moved, or of another size."""
        super().viewTransformChanged()
        self.in_view.moved()

    def _seen_rect(self) -> QRectF:
        rect: QRectF = self.viewRect() if self.getViewBox() is not None else self.boundingRect()
        return rect

    def _columns_in(self, seen: QRectF) -> tuple[int, int]:
        """(first, stop) of the columns in view."""
        first = min(self._columns - 1, max(0, int(np.floor(seen.left() + 0.5))))
        return first, max(first + 1, min(self._columns, int(np.ceil(seen.right() + 0.5))))

    def _parts_in_view(self) -> Iterator[Ends]:
        """The cells in view, as wide as they are drawn, a part of the steps after the other."""
        if self._overview is None or not self._columns or not self._rows:
            return
        seen = self._seen_rect()
        first, stop = self._columns_in(seen)
        top = min(self._rows - 1, max(0, int(np.floor(seen.top() + 0.5))))
        rows = slice(top, max(top + 1, min(self._rows, int(np.ceil(seen.bottom() + 0.5)))))
        view = self.getViewBox()
        width = cell_width(stop - first, max(16, int(view.width()))) if self._changes and view is not None else 1
        for part in parts_of(first - first % width, stop, width):
            yield self._known_cells(part, -(-(part[1] - part[0]) // width), rows)

    def _known_cells(self, part: tuple[int, int], cells: int, rows: slice) -> Ends:
        """Minima and maxima of some columns and rows on screen, NaN where they are covered."""
        assert self._overview is not None
        low, high = self._overview(part, cells)
        ends = (low,) if low is high else (low, high)
        order = self._order if self._order is not None and len(self._order) == self._rows else None
        drawn = [one.reshape(len(one), -1)[:, rows if order is None else order[rows]] for one in ends]
        size = ((part[1] - part[0]) / max(1, len(low)), 1.0)
        rects = [rect for kind in self._covers for rect in kind]
        found = [without_gaps(one.T, rects, (part[0], rows.start), size) for one in drawn]
        return found[0], found[-1]

    def _draw(self, painter: QPainter, area: QRectF, image: QImage, source: QRectF) -> None:
        """The part of the image that is in view."""
        draw_part(painter, area, image, source)

    @staticmethod
    def _seen(rects: list[Rect], left: int, right: int, cell: float) -> list[QRectF]:
        """The rectangles in view, widened to whole cells of the image: a cell with a gap in it is not known."""
        found = []
        for (first, stop), (top, bottom) in rects:
            first, stop = max(first, left), min(stop, right)
            if first < stop:
                low = left + np.floor((first - left) / cell + 1e-9) * cell
                high = min(float(right), left + np.ceil((stop - left) / cell - 1e-9) * cell)
                found.append(QRectF(low - 0.5, top - 0.5, high - low, bottom - top))
        return found

    def _grown(self, first: int, stop: int, cells: int, height: int, *, in_turns: bool) -> Picture:
        """The image of an array that grows: what is new is added to it, on screen a part after the other."""
        assert self._overview is not None and self._changes is not None
        changed, self._seen_last = self._changes(self._seen_last)
        levels, order = replace(self.levels, clipped=0.0, robust=None, full=None, view=None), self._order
        key = (levels, None if order is None else order.tobytes(), min(height, self._rows), self._rows)
        self._growing.show(
            (first, stop), cell_width(stop - first, cells), key, changed, self._overview,
            partial(self._colour, height), in_turns=in_turns,
        )  # fmt: skip
        if not self._growing.whole:
            QTimer.singleShot(0, self, self.update)
        return self._growing.image, self._growing.source, (self._growing.first, self._growing.stop)

    def _whole(self, first: int, stop: int, cells: int, height: int) -> Picture:
        """The image of an array of which nothing is known to stay as it was."""
        assert self._overview is not None
        key = (first, stop, cells, height, self._revision, self.levels)
        if self._cache is None or self._cache[0] != key:
            pixels = np.ascontiguousarray(self._colour(height, *self._overview((first, stop), cells)).T)
            rows, columns = pixels.shape
            image = QImage(pixels.data, columns, rows, 4 * columns, QImage.Format.Format_ARGB32_Premultiplied)
            self._cache = (key, image.copy())
        image = self._cache[1]
        return image, QRectF(image.rect()), (first, stop)

    def _colour(self, height: int, low: Array, high: Array) -> npt.NDArray[np.uint32]:
        levels = self.levels
        return coloured(arranged(low, high, levels, self._order, height), levels, levels.table)
