"""Attention as lines from queries to keys: the strongest weights, or those of the token under the mouse."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import (
    QGraphicsSceneHoverEvent,
    QGraphicsSceneMouseEvent,
    QGraphicsSceneWheelEvent,
    QStyleOptionGraphicsItem,
    QWidget,
)

from inspector.analysis.attention.strongest import Links, apart, strongest, strongest_of_each
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.records import counted

Array = npt.NDArray[Any]
OF_EACH = (1, 3)
ABOUT = 200
COUNTS = (50, 200, 1000)
"""How many lines may be drawn of each query, about (the same number of each), or in all; of a token alone the fewest
of the latter."""
HEADER, MARGIN, NAMES, GAP = 20.0, 6.0, 84.0, 6.0
"""Pixels of the line above, above and below the tokens, of the names on each side, and between names and lines."""
MEASURED = 2000
"""Names of a side of which the width is measured; with more there is always a long one."""
FINE, THIN, THICK, THICK_SHARE = 0.6, 0.6, 3.0, 0.8
"""Pixels of a line of weight 0, what the strongest has more: as much at most, as little at least, and between them a
share of the distance of two tokens, so that neighbours do not run together."""
PALEST = 0.15
"""Opacity of a line of weight 0; it goes with the square root of the weight, as the colours of maps do: in a causal map
the first query always has a weight of 1, beside which all others were a haze."""
PALEST_MARKED, FINE_MARKED = 0.6, 1.5
"""Opacity and pixels that a line of the cursor has at least: it lies over others."""
APART = 3.0
"""Pixels: of lines that begin and end less than this from each other the strongest is drawn. More are no lines, but a
block: 300 steps in 100 pixels of a low panel."""
ZOOM = 0.8
CLOSEST = 0.004
ROUND = (1, 2, 5)


class LinesView(pg.GraphicsWidget):  # type: ignore[misc]
    """Queries on the left, keys on the right; width and opacity of a line go with its weight.

    Only the `count` strongest weights are drawn, and the line above says which part of all weight they are; of those
    that would run together the strongest, until they are zoomed. Under the mouse a token is shown alone. A query of
    which a weight is NaN, or not known, has a hatched mark.
    """

    alone_changed = Signal()

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self.count, self.of_each = COUNTS[1], OF_EACH[0]
        """How many are drawn: so many of each query, or, where that is 0, so many in all."""
        self._weights: Array = np.zeros((0, 0))
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._cursor: tuple[int | None, int | None] = (None, None)
        self.alone: tuple[int, int] | None = None
        """(0 for a query, 1 for a key; which) of the token under the mouse."""
        self.view = (0.0, 1.0)
        """The part of both columns that is in view."""
        self._tokens: tuple[float, float] | None = None
        """The queries that the user has zoomed to, by number; None for all, of however many there are."""
        self._links: dict[Any, Links] = {}
        self._wide: tuple[float, float] | None = None
        self.setAcceptHoverEvents(True)
        self.setFlag(self.GraphicsItemFlag.ItemClipsToShape)

    # -- contents

    def set_weights(self, weights: Array, queries: Sequence[str], keys: Sequence[str]) -> None:
        """Weights (query, key), −∞ at masked ones, and the names of both."""
        if weights.shape != self._weights.shape:
            self.alone = None
            if weights.size:
                self._see_tokens(len(weights))
        self._weights, self._names = weights, (queries, keys)
        self._wide = None
        self._links.clear()
        self.update()

    def set_count(self, count: int, *, of_each: bool = False) -> None:
        """Draw other numbers of lines."""
        self.count, self.of_each = (self.count, count) if of_each else (count, 0)
        self._links.clear()
        self.update()

    def set_cursor(self, query: int | None, key: int | None) -> None:
        """Highlight the names of one query and of one key."""
        if (query, key) != self._cursor:
            self._cursor = (query, key)
            self.update()

    @property
    def links(self) -> Links:
        """The weights that are drawn: the strongest, or those of the token under the mouse."""
        if self.alone not in self._links:
            side, at = self.alone or (-1, 0)
            only = {0: {"query": at}, 1: {"key": at}}.get(side, {})
            if self.alone is None and self.of_each:
                self._links[None] = strongest_of_each(self._weights, self.of_each)
            else:
                count = self.count if self.alone is None else COUNTS[0]
                self._links[self.alone] = strongest(self._weights, count, **only)
        return self._links[self.alone]

    @property
    def sentence(self) -> str:
        """What is drawn, in words."""
        links = self.links
        if not len(links):
            return "no weight above 0"
        whole = "all" if self.alone is None else "its"
        share = f"{100 * links.share:.3g} % of {whole} weight, from {abs(links.weights[0]):.2g} on"
        drawn, of = int(self.drawn.sum()), int(self._in_view().sum())
        if 0 < drawn < of and self.area().height() > 0:
            return f"{self._which('')}: {drawn} lines for {of}; {share}"
        if self.alone is None and len(links) == links.of:
            return f"all {counted(links.of, 'weight')} ≠ 0, from {abs(links.weights[0]):.2g} on"
        return f"{self._which(f'{len(links)} of {links.of} weights ≠ 0')}: {share}"

    def _which(self, of: str) -> str:
        """Which weights these are; `of`: how many of how many, where it is said."""
        if self.alone is None and self.of_each:
            each = "strongest" if self.of_each == 1 else f"{self.of_each} strongest"
            return f"the {each} of each query" + (f", {of}" if of else "")
        which = f"the strongest {of or len(self.links)}"
        return which if self.alone is None else f"{('query', 'key')[self.alone[0]]} {self.alone[1]} alone, {which}"

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which of `links` are drawn: of those that would run together the strongest, the cursor's before others."""
        links, found = self.links, self._in_view()
        marked = (links.queries == self._cursor[0]) | (links.keys == self._cursor[1])
        starts, ends = (self._places(side, of)[found] for side, of in enumerate((links.queries, links.keys)))
        found[found] = apart(starts, ends, APART, marked[found])
        return found

    def _in_view(self) -> npt.NDArray[np.bool_]:
        """Which of `links` cross the part in view."""
        ends = [self._places(side, tokens) for side, tokens in enumerate((self.links.queries, self.links.keys))]
        area = self.area()
        inside: npt.NDArray[np.bool_] = (np.minimum(*ends) <= area.bottom()) & (np.maximum(*ends) >= area.top())
        return inside

    def _places(self, side: int, tokens: Array) -> Array:
        """Pixels down to where the lines of tokens begin or end."""
        first, second = (self.place_of(side, at).y() for at in (0, 1))
        return first + tokens * (second - first)

    # -- places

    def area(self) -> QRectF:
        """Where names and lines are drawn."""
        return QRectF(self.boundingRect()).adjusted(0, HEADER + MARGIN, 0, -MARGIN)

    def names_wide(self, side: int) -> float:
        """Pixels of the names of one side: as many as the longest needs in bold, NAMES at most."""
        if self._wide is None:
            font = self.font()
            font.setBold(True)
            self._wide = (self._needed(0, QFontMetricsF(font)), self._needed(1, QFontMetricsF(font)))
        return self._wide[side]

    def _needed(self, side: int, metrics: QFontMetricsF) -> float:
        count = self._weights.shape[side]
        if count > MEASURED:
            return NAMES
        return min(
            NAMES, max((metrics.horizontalAdvance(self._name(side, at, every=True)) for at in range(count)), default=0)
        )

    def height_of(self, side: int) -> float:
        """Pixels from one token to the next."""
        low, high = self.view
        return float(self.area().height() / max(1, self._weights.shape[side]) / (high - low))

    def place_of(self, side: int, at: float) -> QPointF:
        """Where the lines of a token begin (side 0, queries) or end (side 1, keys)."""
        area = self.area()
        names = self.names_wide(side) + GAP
        x = area.left() + names if side == 0 else area.right() - names
        share = (at + 0.5) / max(1, self._weights.shape[side])
        low, high = self.view
        return QPointF(x, area.top() + (share - low) / (high - low) * area.height())

    def data_at(self, position: QPointF) -> tuple[float, float]:
        """(key, query) at a position of the item: a query on its left half, a key on its right; NaN for the other."""
        area = self.area()
        side = 0 if position.x() < area.center().x() else 1
        count = self._weights.shape[side]
        low, high = self.view
        share = low + (position.y() - area.top()) / area.height() * (high - low) if area.height() > 0 else math.nan
        at = share * count - 0.5 if count else math.nan
        return (math.nan, at) if side == 0 else (at, math.nan)

    # -- mouse

    def hoverEnterEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """The mouse has come."""
        self.hoverMoveEvent(event)

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """The token under the mouse is shown alone."""
        key, query = self.data_at(event.pos())
        side, at = (1, key) if math.isnan(query) else (0, query)
        near = not math.isnan(at) and event.pos().y() >= self.area().top()
        self._show_alone((side, min(max(0, round(at)), self._weights.shape[side] - 1)) if near else None)

    def hoverLeaveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """All again."""
        self._show_alone(None)

    def _show_alone(self, alone: tuple[int, int] | None) -> None:
        if alone != self.alone:
            self.alone = alone
            self.update()
            self.alone_changed.emit()

    def wheelEvent(self, event: QGraphicsSceneWheelEvent) -> None:
        """Zoom around the mouse."""
        area = self.area()
        low, high = self.view
        share = min(1.0, max(0.0, (event.pos().y() - area.top()) / max(1.0, area.height())))
        self.zoom(ZOOM ** (event.delta() / 120), low + share * (high - low))
        event.accept()

    def zoom(self, factor: float, around: float) -> None:
        """Show a part that is `factor` times as large, with one place (a share of the whole) where it was."""
        low, high = self.view
        factor = max(factor, CLOSEST / (high - low))
        self._see(around - (around - low) * factor, around + (high - around) * factor)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Take hold of the columns, to drag them."""
        event.accept()

    def mouseMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """Drag both columns up or down."""
        low, high = self.view
        by = (event.lastPos().y() - event.pos().y()) / max(1.0, self.area().height()) * (high - low)
        self._see(low + by, high + by)

    def show_whole(self) -> None:
        """All tokens."""
        self._see(0.0, 1.0)

    @property
    def tokens(self) -> tuple[float, float] | None:
        """The queries in view, by number from the first one's edge on; None for all."""
        return None if self.view == (0.0, 1.0) else self._tokens

    def zoom_to(self, first: float, last: float) -> None:
        """These queries, as far as they are there."""
        self._tokens = first, last
        self._see_tokens(len(self._weights))

    def _see_tokens(self, count: int) -> None:
        """What the user has zoomed to where there are so many queries; all where none of it is there."""
        kept = self._tokens
        if kept is None or not count or kept[0] >= count:
            self.view = (0.0, 1.0)
        else:
            self._see(kept[0] / count, kept[1] / count)
        self._tokens = kept
        self.update()

    def _see(self, low: float, high: float) -> None:
        size = min(1.0, high - low)
        low = min(max(0.0, low), 1.0 - size)
        self.view = (low, low + size)
        count = len(self._weights)
        self._tokens = (low * count, (low + size) * count) if size < 1.0 and count else None
        self.update()

    # -- painting

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """What is drawn in words, lines, names."""
        if not self._weights.size:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = QFontMetricsF(painter.font())
        painter.setPen(QColor(self.theme.muted))
        head = QRectF(self.boundingRect()).adjusted(GAP, 0, -GAP, 0)
        head.setHeight(HEADER)
        said = metrics.elidedText(self.sentence, Qt.TextElideMode.ElideRight, head.width())
        painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, said)
        painter.setClipRect(self.area().adjusted(0, -MARGIN, 0, MARGIN))
        self._paint_unknown(painter)
        self._paint_lines(painter)
        for side in (0, 1):
            self._paint_names(painter, side, metrics)

    def _paint_unknown(self, painter: QPainter) -> None:
        """No line from there would read as a weight of 0."""
        unknown = np.flatnonzero(np.isnan(self._weights).any(axis=1)).tolist()
        height = max(2.0, self.height_of(0) - 2)
        places = [self.place_of(0, i) for i in unknown]
        paint_gaps(painter, self.theme, (), [QRectF(at.x(), at.y() - height / 2, 24, height) for at in places])

    def _paint_lines(self, painter: QPainter) -> None:
        links, drawn = self.links, self.drawn
        most = float(np.abs(links.weights).max()) if len(links) else 1.0
        widest = min(THICK, max(THIN, THICK_SHARE * self.height_of(0)))
        shown = (links.queries[drawn], links.keys[drawn], links.weights[drawn])
        lines = [
            (query == self._cursor[0] or key == self._cursor[1], query, key, weight)
            for query, key, weight in zip(*(part.tolist() for part in shown), strict=True)
        ]
        for marked, query, key, weight in sorted(lines, key=lambda line: line[0]):  # the cursor's above the others
            share = abs(weight) / most
            colour = QColor(self.theme.cursor if marked else self.theme.accent if weight > 0 else self.theme.error)
            least = PALEST_MARKED if marked else PALEST
            colour.setAlphaF(least + (1 - least) * math.sqrt(share))
            painter.setPen(QPen(colour, max(FINE_MARKED if marked else FINE, FINE + widest * share)))
            painter.drawLine(self.place_of(0, query), self.place_of(1, key))

    def _paint_names(self, painter: QPainter, side: int, metrics: QFontMetricsF) -> None:
        """As many names as there is room for, and those of marked tokens."""
        height = self.height_of(side)
        first = self._marked(side)
        flag = Qt.AlignmentFlag.AlignRight if side == 0 else Qt.AlignmentFlag.AlignLeft
        names = self.names_wide(side)
        left = self.area().left() if side == 0 else self.area().right() - names
        for at in self.named(side, height, metrics.height() * 0.85):
            painter.setPen(QColor(self.theme.cursor if at == self._cursor[side] else self.theme.text))
            font = painter.font()
            font.setBold(at in first)
            painter.setFont(font)
            text = self.fitting(side, at, QFontMetricsF(font), names, every=height < metrics.height())
            middle = self.place_of(side, at).y()
            box = QRectF(left, middle - metrics.height() / 2, names, metrics.height())
            painter.drawText(box, flag | Qt.AlignmentFlag.AlignVCenter, text)

    def _name(self, side: int, at: int, *, every: bool) -> str:
        """A token; where only some are named its number too, which says how far apart they are."""
        names = self._names[side]
        if at >= len(names):
            return str(at)
        return f"{token(names[at])} {at}" if every else token(names[at])

    def fitting(self, side: int, at: int, metrics: QFontMetricsF, width: float, *, every: bool) -> str:
        """The name, with a long token cut before its number, not behind."""
        number = f" {at}" if every and at < len(self._names[side]) else ""
        name = self._name(side, at, every=False)
        room = width - metrics.horizontalAdvance(number)
        return metrics.elidedText(name, Qt.TextElideMode.ElideRight, room) + number

    def _marked(self, side: int) -> set[int]:
        """Tokens that are named first: the cursor's, and where one is alone it and those at its lines' other ends."""
        found = {self._cursor[side]} - {None}
        if self.alone is not None:
            own, at = self.alone
            ends = (self.links.queries, self.links.keys)[side]
            found |= {at} if own == side else set(ends[::-1].tolist())
        return {at for at in found if at is not None}

    def named(self, side: int, height: float, room: float) -> list[int]:
        """The tokens in view that are named, none closer than `room` pixels to another: the marked ones first, then
        every n-th, n round."""
        count = self._weights.shape[side]
        every = next(
            unit * 10**power for power in range(9) for unit in ROUND if unit * 10**power * height >= room
        )  # fmt: skip
        low, high = self.view
        seen = range(max(0, math.floor(low * count)), min(count, math.ceil(high * count)))
        ordered = [*self._by_strength(side), *range(seen.start - seen.start % -every, seen.stop, every)]
        taken: list[int] = []  # sorted
        for at in ordered:
            place = bisect_left(taken, at)
            if at in seen and all(abs(at - other) * height >= room for other in taken[max(0, place - 1) : place + 1]):
                taken.insert(place, at)
        return taken

    def _by_strength(self, side: int) -> list[int]:
        """The marked tokens: the cursor's, then by the strength of their lines."""
        marked = self._marked(side)
        ends = (self.links.queries, self.links.keys)[side][::-1].tolist() if self.alone is not None else []
        own = [
            at
            for at in (self._cursor[side], self.alone[1] if self.alone and self.alone[0] == side else None)
            if at is not None
        ]
        return list(dict.fromkeys(at for at in (*own, *ends) if at in marked))
