"""Coloured cells of an array that grows along its steps: only what is new is read and coloured.

A cell covers a fixed number of steps, counted from step 0, so that cells which are complete never change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPaintEngine, QPainter

from inspector.capture.pyramid import LEVELS
from inspector.gui.widgets.images.quantise import Levels, extreme

Array = npt.NDArray[Any]
Pixels = npt.NDArray[np.uint32]
SLICE, SLICE_SECONDS = 4096, 0.03
"""Steps that are read at a time, and the CPU time after which a slice was the last one of a `show` that takes turns:
3,000 small pages take 0.15 s to be read and checked."""
BLOCK = 64
"""Cells that are coloured together: of 512 units what lies between the steps of it stays in a core's cache."""
Overview = Callable[[tuple[int, int], int], tuple[Array, Array]]
Colour = Callable[[Array, Array], Pixels]
"""Minima and maxima (cell, unit) → colours (cell, row)."""


def cell_width(columns: int, cells: int) -> int:
    """Steps of one cell, so that so many columns are at most so many cells; a multiple of the coarsest stored level
    that is no wider, which then is read as it is."""
    width = max(1, -(-columns // max(1, cells)))
    level = max((level for level in LEVELS if level <= width), default=1)
    return -(-width // level) * level


def coloured(values: Array, levels: Levels, table: Pixels) -> Pixels:
    """The colours of values."""
    found: Pixels = table.take(levels.index(values))
    return found


def arranged(low: Array, high: Array, levels: Levels, order: npt.NDArray[np.intp] | None, height: int) -> Array:
    """(cell, row) what each cell shows: rows in their order, several as one where there are more than pixels."""
    values = extreme(low, high, levels.scale)
    if values.ndim == 1:
        values = values[:, None]
    if order is not None and len(order) == values.shape[1]:
        values = values[:, order]
    if values.shape[1] > height:
        starts = np.arange(0, values.shape[1], -(-values.shape[1] // height))
        least, most = (how.reduceat(values, starts, axis=1) for how in (np.minimum, np.maximum))
        values = extreme(least, most, levels.scale)
    return values


class GrowingImage:
    """The image of a range of steps, kept from one draw to the next.

    Attributes:
        width: steps of a cell.
        first, stop: the steps that are drawn; `first` is a multiple of `width`.
    """

    def __init__(self) -> None:
        self.width, self.first, self.stop = 1, 0, 0
        self._key: Any = None
        self._pixels: Pixels = np.zeros((0, 0), np.uint32)
        self.image = QImage()
        self.drawn = 0
        """Cells that were coloured at the last `show`: all of them, or those that are new."""
        self.whole = True
        """Whether all that was asked for is drawn; else the next `show` goes on."""

    def forget(self) -> None:
        """Colour everything at the next `show`."""
        self._key = None

    def show(
        self,
        span: tuple[int, int],
        width: int,
        key: Any,
        changed: int,
        overview: Overview,
        colour: Colour,
        *,
        in_turns: bool = False,
    ) -> None:
        """Colour what is new of the steps `span`; `in_turns` as much of it as a window has time for.

        What was coloured is kept where `key`, all that the colours depend on beside the array, is the same, and where
        the steps before `changed` are as they were.
        """
        first, stop = span[0] - span[0] % width, span[1]
        done = 0
        if (key, first, width) == self._key:
            done = max(0, min(changed, self.stop, stop) - first) // width
        start, end = first + done * width, time.thread_time() + SLICE_SECONDS
        cells, reached = -(-(stop - first) // width), stop
        for part in parts_of(start, stop, width):
            if in_turns and part[0] > start and time.thread_time() > end:
                reached = part[0]
                break
            self._colour_part(part, (part[0] - first) // width, width, cells, overview, colour)
        self.drawn, self.whole = -(-(reached - start) // width), reached == stop
        self._key, self.first, self.stop, self.width = (key, first, width), first, reached, width
        rows, room = self._pixels.shape
        self.image = QImage(self._pixels.data, room, rows, 4 * room, QImage.Format.Format_ARGB32_Premultiplied)

    def _colour_part(
        self, part: tuple[int, int], cell: int, width: int, cells: int, overview: Overview, colour: Colour
    ) -> None:
        """Colour the steps of a part, the first of which lie in the cell of that number."""
        low, high = overview(part, -(-(part[1] - part[0]) // width))
        for at in range(0, len(low), BLOCK):
            some = low[at : at + BLOCK]
            self._put(cell + at, colour(some, some if low is high else high[at : at + BLOCK]), cells)

    def _put(self, at: int, colours: Pixels, cells: int) -> None:
        """Write new cells in place; the image has room for as many again."""
        rows = colours.shape[1]
        if self._pixels.shape[0] != rows or self._pixels.shape[1] < cells:
            grown = np.zeros((rows, max(64, 2 * cells)), np.uint32)
            if at and self._pixels.shape[0] == rows:
                grown[:, :at] = self._pixels[:, :at]
            self._pixels = grown
        self._pixels[:, at : at + len(colours)] = colours.T

    @property
    def source(self) -> QRectF:
        """The part of the image that is drawn. The last cell is as wide as the others, also where it has fewer steps:
        narrower than a pixel it might not be seen."""
        return QRectF(0, 0, -(-(self.stop - self.first) // self.width), self._pixels.shape[0])


def parts_of(start: int, stop: int, width: int) -> list[tuple[int, int]]:
    """The whole cells, some at a time, and the last one, which may be smaller: an overview divides what it is asked for
    evenly."""
    whole = start + (stop - start) // width * width
    some = max(1, SLICE // width) * width
    parts = [(at, min(at + some, whole)) for at in range(start, whole, some)]
    return [*parts, (whole, stop)] if whole < stop else parts


def into_svg(painter: QPainter) -> bool:
    """Whether it is drawn into SVG, where Qt leaves out some of what it does elsewhere."""
    engine = painter.paintEngine()
    return engine is not None and engine.type() == QPaintEngine.Type.SVG


def draw_part(painter: QPainter, area: QRectF, image: QImage, source: QRectF) -> None:
    """Draw a part of an image. Qt writes the whole of it into SVG, whatever the part: there it is cut out first."""
    if into_svg(painter):
        painter.drawImage(area, image.copy(source.toAlignedRect()))
    else:
        painter.drawImage(area, image, source)
