"""A legend above its plot, never over its curves: a sample and a name for each line, in as many rows as needed.

In a low plot it stands at the right of a title that leaves it room, which is a row more for the curves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from pyqtgraph.graphicsItems.ScatterPlotItem import drawSymbol
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsSceneHoverEvent, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.plots.quiet_axis import is_low
from inspector.gui.widgets.plots.title import Title, told
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.widgets.type_scale import share_of_pixels, small_points

SAMPLE, BESIDE, GAP, ROW = 18.0, 3.0, 14.0, 17.0
"""Widths of a sample, of the space before a name and of that after it, and the height of a row, in pixels."""
BAND = 8.0
"""Pixels of height of the sample of a band."""
MOST_ROWS, PER_ROW = 3, 45.0
"""Rows in a low plot, and the height in pixels of a plot for each row where it is high: a third of it."""
LONGEST = 60
HOW = "Click: hide or show; Alt+click: alone"
ALONE = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ControlModifier
"""Some window managers take Alt and a click for themselves: Ctrl does the same."""
CUT = 4.0
"""Pixels that a name needs beyond its letters so that Qt does not take it for too long."""
PALE = 0.35
"""Opacity of the sample of a curve that is hidden."""
ROW_ABOVE = 1
"""The row of a plot's layout between its title and its curves."""


def row_height() -> float:
    """Pixels of a row with its present size of text."""
    return ROW * max(1.0, share_of_pixels())


class Legend(pg.GraphicsObject):  # type: ignore[misc]
    """Names of curves, between the title of a plot and its curves. Names are plain text.

    A click hides a curve or shows it again, with Alt it is shown alone. What is hidden stays so for as long as there is
    an entry of that name, also where its curve is drawn anew. Hidden items are transparent and not invisible:
    whether a curve has anything to show is its panel's business.
    """

    switched = Signal()
    """Some curves were hidden, or are shown again."""

    def __init__(self, plot: Any, lines: Sequence[Any] = (), names: Sequence[str] = (), theme: Theme = LIGHT) -> None:
        super().__init__()
        self.plot, self.theme = plot, theme
        self.entries: list[tuple[Any, str]] = []
        self.hidden: set[str] = set()
        """Keys of the curves that are switched off."""
        self._also: list[tuple[Any, ...]] = []
        self._places: list[QPointF] = []
        self._area = QRectF()
        self.beside_title = False
        self._font = QFont()
        self._font.setPointSizeF(small_points())
        self.setParentItem(plot)
        self.setAcceptHoverEvents(True)
        plot.vb.sigResized.connect(self._arrange)
        plot.legend_above = self
        for line, name in zip(lines, names, strict=True):
            self.addItem(line, name)

    def addItem(self, line: Any, name: str, *also: Any) -> None:
        """One more curve or scatter and its name; `also` are items that belong to it: its band, its single points."""
        self.entries.append((line, clean(name)[:LONGEST]))
        self._also.append(also)
        self._show(len(self.entries) - 1)
        self._arrange()

    def belongs(self, line: Any, *also: Any) -> None:
        """More items that belong to a curve that is there: they are switched with it."""
        for n, entry in enumerate(self.entries):
            if entry[0] is line:
                self._also[n] = (*self._also[n], *also)
                self._show(n)

    def removeItem(self, line: Any) -> None:
        """Remove one."""
        at = [n for n, entry in enumerate(self.entries) if entry[0] is line]
        for n in reversed(at):
            self._set_opacity(n, 1.0)
            del self.entries[n], self._also[n]
        self._arrange()

    def clear(self) -> None:
        """Remove all."""
        for n in range(len(self.entries)):
            self._set_opacity(n, 1.0)
        self.entries, self._also = [], []
        self._arrange()

    # -- switching

    def key(self, number: int) -> str:
        """What an entry is known by: its name without what is told of it in brackets, which changes."""
        return self.entries[number][1].partition(" (")[0]

    def is_hidden(self, number: int) -> bool:
        """Whether the curve of an entry is switched off."""
        return self.key(number) in self.hidden

    def can_switch(self, number: int) -> bool:
        """Whether an entry names something that is drawn by itself, and is no key to marks."""
        return any(item.scene() is not None for item in self._items(number))

    def switch(self, number: int, *, alone: bool = False) -> None:
        """Hide the curve of an entry, or show it again; or show it `alone`, and all again where it is that already."""
        every = {self.key(n) for n in range(len(self.entries)) if self.can_switch(n)}
        key = self.key(number)
        if not self.can_switch(number):
            return
        if alone:
            others = every - {key}
            self.hidden = self.hidden - every if self.hidden & every == others else self.hidden - {key} | others
        else:
            self.hidden = self.hidden ^ {key}
        self._switched()

    def show_every(self) -> None:
        """Hide nothing."""
        self.hidden = set()
        self._switched()

    def _switched(self) -> None:
        for n in range(len(self.entries)):
            self._show(n)
        self.update()
        self.switched.emit()

    def _items(self, number: int) -> tuple[Any, ...]:
        return (self.entries[number][0], *self._also[number])

    def _show(self, number: int) -> None:
        self._set_opacity(number, 0.0 if self.is_hidden(number) else 1.0)

    def _set_opacity(self, number: int, opacity: float) -> None:
        for item in self._items(number):
            item.setOpacity(opacity)

    def entry_at(self, place: QPointF) -> int | None:
        """The entry under a place of the legend, or None."""
        metrics = QFontMetricsF(self._font)
        for n, ((_, name), at) in enumerate(zip(self.entries, self._places, strict=True)):
            box = QRectF(at.x(), at.y(), SAMPLE + BESIDE + metrics.horizontalAdvance(name), row_height())
            if box.contains(place) and self._area.contains(place):
                return n
        return None

    def mouseClickEvent(self, event: Any) -> None:
        """Switch the entry under the mouse."""
        number = self.entry_at(event.pos()) if event.button() == Qt.MouseButton.LeftButton else None
        if number is None or not self.can_switch(number):
            event.ignore()
            return
        event.accept()
        self.switch(number, alone=bool(event.modifiers() & ALONE))

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        """A hand over what can be switched, and what the curve is."""
        number = self.entry_at(event.pos())
        switches = number is not None and self.can_switch(number)
        self.setCursor(Qt.CursorShape.PointingHandCursor if switches else Qt.CursorShape.ArrowCursor)
        name = self.entries[number][1] if number is not None else ""
        known = told(self, name) if name else ""
        lines = ["" if known.startswith(f"{name}:") else name, known, HOW if switches else ""]
        self.setToolTip(tooltip("\n".join(filter(None, lines))))

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        if self._font.pointSizeF() != small_points():
            self._font.setPointSizeF(small_points())
            self._arrange()
        self.update()

    def fit(self) -> None:
        """The plot has another title, or another size."""
        if self.entries and self.beside_title != self._has_room_beside():
            self._arrange()

    def _has_room_beside(self) -> bool:
        """Whether all entries fit into the row of the title, in a low plot."""
        title = getattr(self.plot, "titleLabel", None)
        if not isinstance(title, Title) or not title.lines or not is_low(self.plot):
            return False
        return bool(title.alone() + GAP + self._width() <= self.plot.vb.geometry().width())

    def _width(self) -> float:
        """Of all entries beside each other."""
        widths = self._widths()
        return math.ceil(sum(widths) - GAP + CUT) if widths else 0.0

    def _widths(self) -> list[float]:
        """Of each entry with the space after it; a part of a pixel less would cut a name."""
        metrics = QFontMetricsF(self._font)
        return [SAMPLE + BESIDE + metrics.horizontalAdvance(name) + 1 + GAP for _, name in self.entries]

    def _arrange(self, *_: object) -> None:
        """Flow the entries into rows as wide as the plot, and reserve space for the rows; or, in a low plot, put them
        beside the title."""
        box = self.plot.vb.geometry()
        self.prepareGeometryChange()
        self.beside_title = self._has_room_beside()
        self._places, x, row, high = [], 0.0, 0, row_height()
        most = max(MOST_ROWS, int(self.plot.size().height() / PER_ROW))
        for width in self._widths():
            if x and x + width - GAP > box.width() and row < most - 1:
                x, row = 0.0, row + 1
            self._places.append(QPointF(x, row * high))
            x += width
        height = (row + 1) * high + 2 if self.entries else 0.0
        width = self._width() if self.beside_title else max(0.0, box.width())
        self._area = QRectF(0, 0, width, height)
        self.setPos(box.right() - width if self.beside_title else box.left(), box.top() - height)
        height = 0.0 if self.beside_title else height
        if self.plot.layout.rowMaximumHeight(ROW_ABOVE) != height:
            self.plot.layout.setRowFixedHeight(ROW_ABOVE, height)
        self.update()

    def boundingRect(self) -> QRectF:
        """The rows, as wide as the plot."""
        return self._area

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """A piece of each line and its name, cut with an ellipsis where the plot ends."""
        painter.setFont(self._font)
        painter.setClipRect(self._area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        struck = QFont(self._font)
        struck.setStrikeOut(True)
        high = row_height()
        for number, ((line, name), place) in enumerate(zip(self.entries, self._places, strict=True)):
            hidden = self.is_hidden(number)
            painter.setOpacity(PALE if hidden else 1.0)
            for band in (item for item in self._also[number] if isinstance(item, pg.FillBetweenItem)):
                painter.fillRect(QRectF(place.x() + 2, place.y() + high / 2 - BAND / 2, SAMPLE - 2, BAND), band.brush())
            self._sample(painter, line.opts, place + QPointF(0, high / 2))
            painter.setOpacity(1.0)
            painter.setFont(struck if hidden else self._font)
            painter.setPen(QColor(self.theme.muted if hidden else self.theme.text))
            left = place.x() + SAMPLE + BESIDE
            room = QRectF(left, place.y(), max(0.0, self._area.width() - left), high)
            shown = QFontMetricsF(painter.font()).elidedText(name, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)

    def _sample(self, painter: QPainter, look: Any, middle: QPointF) -> None:
        if look.get("pen") is not None and look.get("connect") is not None:
            painter.setPen(pg.mkPen(look["pen"]))
            painter.drawLine(middle + QPointF(2, 0), middle + QPointF(SAMPLE, 0))
        elif look.get("symbol") is not None:
            painter.save()
            painter.translate(middle + QPointF(SAMPLE / 2, 0))
            brush = look.get("brush") if "brush" in look else look.get("symbolBrush")
            drawSymbol(painter, look["symbol"], 8, pg.mkPen(None), pg.mkBrush(brush))
            painter.restore()


def legends_in(scene: Any) -> list[Legend]:
    """The legends of a scene with entries that can be switched, from the top and the left."""
    found = [item for item in scene.items() if isinstance(item, Legend) and item.isVisible() and item.entries]
    return sorted(found, key=lambda one: (one.scenePos().y(), one.scenePos().x()))
