"""Thumbnails of many heads, all in one rule of colours: in groups, with a number below each, scrolled where there are
more than fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter
from PySide6.QtWidgets import (
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QGraphicsSceneWheelEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from inspector.gui.widgets.gaps import Gaps, Rect
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LAST, LIGHT, MASKED, NOT_A_NUMBER, Theme, colour_table

Array = npt.NDArray[Any]
Picture = npt.NDArray[np.uint8]
Key = tuple[int, int]
"""(layer, head)"""
CELL, GAP = 64, 4
"""Pixels along a side of a thumbnail as it is computed, and between two of them."""
LEAST, MOST = 48.0, 96.0
"""As it is drawn: the largest size at which all fit, and where even the least does not the rest is scrolled."""
HEADER, LINE, TITLE, CAPTION, GUTTER = 34.0, 16.0, 18.0, 14.0, 22.0
"""Pixels of the two lines above, of one of them, of a group's title, of the number below a thumbnail, of a layer's."""
HEADLINE = 236.0
"""Pixels of width in which the rule of colours can be read."""
RULE = "√weight 0 … 1, the largest of a cell"


@dataclass(frozen=True, slots=True)
class Shown:
    """One thumbnail: its head, its picture (None: not computed yet), what is written below it."""

    key: Key
    picture: Picture | None
    caption: str = ""


def thumbnail(weights: Array, size: int = CELL) -> Picture:
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
    picture: Picture = index[_spread(len(rows), size)][:, _spread(len(columns), size)]
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
    """`chosen(layer, head)` on a click, `added(layer, head)` on a click with Ctrl, `opened` on a double click."""

    chosen, added, opened = Signal(int, int), Signal(int, int), Signal(int, int)

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._groups: list[tuple[str, list[Shown]]] = []
        self.names: Sequence[str] = ()
        self._gaps: dict[Key, tuple[Gaps, tuple[int, int]]] = {}
        self._images: dict[Key, tuple[Array, QImage]] = {}
        self._selected: Key = (0, 0)
        self._also: frozenset[Key] = frozenset()
        self._under: Key | None = None
        self._cells: dict[Key, QRectF] = {}
        self._titles: list[tuple[QRectF, str]] = []
        self._height = self._scroll = 0.0
        self._laid: Any = None
        self._room = QSizeF()
        self.note, self._layered = "", True
        self._pictures: dict[Key, Picture] = {}
        self.setMinimumWidth(120)
        self.setAcceptHoverEvents(True)
        self.setFlag(self.GraphicsItemFlag.ItemClipsToShape)

    # -- contents

    def set_heads(
        self,
        groups: Sequence[tuple[str, Sequence[Shown]]],
        names: Sequence[str],
        gaps: Mapping[Key, tuple[Gaps, tuple[int, int]]] | None = None,
        note: str = "",
        *,
        layered: bool = True,
    ) -> None:
        """Thumbnails under the titles of their groups (`layered`: each is a layer); `names` of the layers; `gaps`
        (layer, head) → (what is not known of the map, its numbers of keys and queries); `note`: what is left out."""
        self._groups = [(title, list(heads)) for title, heads in groups]
        self.names, self._gaps, self.note, self._layered = names, dict(gaps or {}), note, layered
        self._laid = None
        known = {one.key: one.picture for _, heads in self._groups for one in heads if one.picture is not None}
        fresh = {key: one for key, one in known.items() if self._pictures.get(key) is not one}
        self._images = {key: image for key, image in self._images.items() if key in known} | _images(fresh)
        self._pictures = known
        self.update()

    def select(self, layer: int, head: int, also: Collection[Key] = ()) -> None:
        """Frame one thumbnail, and those that are shown beside it or together with it."""
        if ((layer, head), frozenset(also)) != (self._selected, self._also):
            self._selected, self._also = (layer, head), frozenset(also)
            self._reveal()
            self.update()

    @property
    def headline(self) -> tuple[str, str]:
        """The head under the mouse, or the chosen one, with its number; the rule of colours and what is left out."""
        layer, head = self._under or self._selected
        name = self.names[layer] if layer < len(self.names) else ""
        caption = next((one.caption for _, heads in self._groups for one in heads if one.key == (layer, head)), "")
        own = " ".join(filter(None, (f"{clean(name)}, head {head}", caption and f"({caption})")))
        return own, "  ·  ".join(filter(None, (self.note, RULE)))

    # -- layout

    def _arrange(self) -> None:
        """Places of all thumbnails, at the largest size at which they fit."""
        area = self.boundingRect()
        laid = (area.width(), area.height(), id(self._groups))
        if laid == self._laid:
            return
        self._laid = laid
        sides = [float(side) for side in np.arange(MOST, LEAST - 1, -2.0)]
        fitting = [side for side in sides if self._height_at(side, area.width()) <= area.height() - HEADER]
        most = max((len(heads) for _, heads in self._groups), default=0)
        unbroken = [side for side in fitting if most <= self._columns(side, area.width())]  # each group in one row
        self._place(next(iter(unbroken or fitting), LEAST), area.width())
        self._scroll = min(self._scroll, self._most_scrolled)
        if area.size() != self._room:  # of another size; new pictures alone leave the part in view as it is
            self._room = area.size()
            self._reveal()

    @property
    def _left(self) -> float:
        """Where the first column begins: after the layers' numbers, where they are written."""
        return GUTTER if self._layered and len(self._groups) > 1 else 4.0

    @property
    def wide(self) -> float:
        """The width beyond which no thumbnail gets larger: each group in one row, and room for the headline."""
        most = max((len(heads) for _, heads in self._groups), default=0)
        return max(HEADLINE, self._left + most * (MOST + GAP))

    @property
    def _titled(self) -> bool:
        """Whether groups have titles."""
        return not self._layered and any(title for title, _ in self._groups)

    def _columns(self, side: float, width: float) -> int:
        return max(1, int((width - self._left) // (side + GAP)))

    def _row_height(self, side: float) -> float:
        captions = any(one.caption for _, heads in self._groups for one in heads)
        return side + GAP + (CAPTION if captions else 0.0)

    def _height_at(self, side: float, width: float) -> float:
        """The height of all groups at a size."""
        columns = self._columns(side, width)
        lines = sum(-(-len(heads) // columns) for _, heads in self._groups)
        return lines * self._row_height(side) + (TITLE * len(self._groups) if self._titled else 0.0)

    def _place(self, side: float, width: float) -> None:
        """Places of all thumbnails at a size."""
        left, columns, down = self._left, self._columns(side, width), self._row_height(side)
        self._cells, self._titles, top = {}, [], 0.0
        for title, heads in self._groups:
            if left == GUTTER:
                self._titles.append((QRectF(2, top, GUTTER - 4, side), str(heads[0].key[0])))
            elif self._titled:
                self._titles.append((QRectF(4, top, width - 8, TITLE), clean(title)))
                top += TITLE
            for i, one in enumerate(heads):
                column, line = i % columns, i // columns
                self._cells[one.key] = QRectF(left + column * (side + GAP), top + line * down, side, side)
            top += -(-len(heads) // columns) * down
        self._height = top

    @property
    def _most_scrolled(self) -> float:
        return max(0.0, self._height - (float(self.boundingRect().height()) - HEADER))

    def cell_at(self, layer: int, head: int) -> QRectF:
        """Where a thumbnail is drawn; an empty rectangle where that head is not shown."""
        self._arrange()
        return QRectF(self._cells.get((layer, head), QRectF())).translated(0, HEADER - self._scroll)

    def head_at(self, x: float, y: float) -> Key | None:
        """The head whose thumbnail is at a position of the item."""
        self._arrange()
        inside = y >= HEADER
        return next((key for key in self._cells if inside and self.cell_at(*key).contains(x, y)), None)

    def _reveal(self) -> None:
        """Scroll until the chosen head is in view."""
        self._arrange()
        cell = self._cells.get(self._selected)
        if cell is not None:
            room = self.boundingRect().height() - HEADER
            self._scroll = min(self._scroll, cell.top())
            self._scroll = max(self._scroll, min(self._most_scrolled, cell.bottom() + CAPTION - room))

    # -- painting

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The headline, the thumbnails in view with their numbers, the frames of the chosen ones. Where a filter leaves
        no head, the headline says so."""
        if not self.names:
            return
        self._arrange()
        area = self.boundingRect()
        painter.setPen(QColor(self.theme.muted))
        metrics = QFontMetricsF(painter.font())
        for number, line in enumerate(self.headline):
            words = metrics.elidedText(line, Qt.TextElideMode.ElideRight, area.width() - 8)
            painter.drawText(QRectF(4, number * LINE, area.width(), LINE), 0, words)
        painter.setClipRect(area.adjusted(0, HEADER, 0, 0))
        for box, text in self._titles:
            painter.drawText(box.translated(0, HEADER - self._scroll), Qt.AlignmentFlag.AlignVCenter, text)
        side = next((cell.width() for cell in self._cells.values()), LEAST)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, side < CELL)
        for _, heads in self._groups:
            for one in heads:
                cell = self._cells[one.key].translated(0, HEADER - self._scroll)
                if cell.bottom() + CAPTION >= HEADER and cell.top() <= area.height():
                    self._paint_head(painter, one, cell, metrics)
        self._paint_frames(painter)
        self._paint_bar(painter, area)

    def _paint_head(self, painter: QPainter, one: Shown, cell: QRectF, metrics: QFontMetricsF) -> None:
        found = self._images.get(one.key)
        painter.fillRect(cell, QColor(self.theme.masked if found is not None else self.theme.grid))
        if found is not None:
            painter.drawImage(cell, found[1])
        if one.key in self._gaps:
            gaps, size = self._gaps[one.key]
            paint_gaps(painter, self.theme, *(_within(cell, rects, size) for rects in (gaps.missing, gaps.damaged)))
        if one.caption:
            painter.setPen(QColor(self.theme.muted))
            box = QRectF(cell.left(), cell.bottom(), cell.width() + GAP, CAPTION)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, fitting(one.caption, metrics, box.width()))

    def _paint_frames(self, painter: QPainter) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for key, pen in (
            *((key, pg.mkPen(self.theme.cursor, width=1, style=Qt.PenStyle.DashLine)) for key in self._also),
            (self._selected, pg.mkPen(self.theme.cursor, width=2)),
        ):
            if key in self._cells:
                painter.setPen(pen)
                painter.drawRect(self.cell_at(*key).adjusted(-1, -1, 1, 1))

    def _paint_bar(self, painter: QPainter, area: QRectF) -> None:
        """Where in the whole the part in view is."""
        if self._most_scrolled <= 0:
            return
        room = area.height() - HEADER
        top = HEADER + room * self._scroll / self._height
        bar = QRectF(area.right() - 5, top, 4, max(8.0, room * room / self._height))
        painter.fillRect(bar, QColor(self.theme.muted))

    # -- mouse

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """A click chooses a head, or adds it."""
        key = self.head_at(event.pos().x(), event.pos().y())
        if event.button() == Qt.MouseButton.LeftButton and key is not None:
            more = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            (self.added if more else self.chosen).emit(*key)
            event.accept()

    def mouseDoubleClickEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """A double click opens the head."""
        key = self.head_at(event.pos().x(), event.pos().y())
        if event.button() == Qt.MouseButton.LeftButton and key is not None:
            self.opened.emit(*key)
            event.accept()

    def hoverEnterEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """The mouse has come."""
        self.hoverMoveEvent(event)

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """The headline names the head under the mouse."""
        self._point(self.head_at(event.pos().x(), event.pos().y()))

    def hoverLeaveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """The headline names the chosen head again."""
        self._point(None)

    def _point(self, key: Key | None) -> None:
        if key != self._under:
            self._under = key
            self.update()

    def wheelEvent(self, event: QGraphicsSceneWheelEvent) -> None:
        """Scroll, where not all thumbnails fit."""
        self._arrange()
        if self._most_scrolled <= 0:
            event.ignore()
            return
        self._scroll = min(self._most_scrolled, max(0.0, self._scroll - event.delta() / 120 * LEAST))
        self.update()
        event.accept()


def _images(pictures: Mapping[Key, Picture]) -> dict[Key, tuple[Array, QImage]]:
    """The pictures as images, coloured together; each with the pixels that it lies in."""
    if not pictures:
        return {}
    pixels = np.ascontiguousarray(colour_table("attention")[np.stack(list(pictures.values()))])
    form = QImage.Format.Format_ARGB32_Premultiplied
    return {
        key: (pixels, QImage(own.data, own.shape[1], own.shape[0], 4 * own.shape[1], form))
        for key, own in zip(pictures, pixels, strict=True)
    }


__all__ = ["CELL", "Atlas", "Shown", "thumbnail"]


def fitting(caption: str, metrics: QFontMetricsF, width: float) -> str:
    """Which head it is and its number, two spaces between them, or with less room one, or the number alone: which head
    it is stands in the line above, where the mouse is over it."""
    ways = (caption, caption.replace("  ", " "), caption.rpartition("  ")[2])
    return next(
        (way for way in ways if metrics.horizontalAdvance(way) <= width),
        metrics.elidedText(ways[-1], Qt.TextElideMode.ElideRight, width),
    )
