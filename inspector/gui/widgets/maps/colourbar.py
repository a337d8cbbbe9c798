"""The colour bar of a map: gradient, limits with unit, and a note when limits clip or NaN is drawn. Its ends can be
dragged to choose the range of the colours; while the mouse is over it, it shows all numbers and how many lie where."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, QTimer
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.images.colour_choice import DRAWN, IN_VIEW, ColourChoice, chosen
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.images.saturated_cells import paint_key
from inspector.gui.widgets.maps.colour_span import STEP, Overview, Span, counted
from inspector.gui.widgets.maps.colourbar_range import in_words, paint_range
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import BEYOND, INFINITE, LAST, LIGHT, NOT_A_NUMBER, Theme, colour_table
from inspector.gui.widgets.type_scale import share_of_pixels

WIDTH, BAR, TIP = 98.0, 12.0, 7.0
LEAST = 20.0
"""Pixels of height of the shortest gradient."""
MISSING, DAMAGED, SATURATED, IN_SIGHT = "not there", "damaged", "saturated", "range in view"

APPLY_MS = 30
"""Milliseconds between two ranges that are drawn while an end is dragged."""
TIP_TEXT = "Drag an end, or both, to choose the range of the colours; double click: as usual. By keys: C, then arrows"

MOST_PLAIN = 99_950
"""Below this, numbers are written with all digits before the point."""


def bar_width() -> float:
    """Pixels of width of a bar with its numbers, in the present size of texts."""
    return WIDTH * max(1.0, share_of_pixels())


class ColourBar(pg.GraphicsWidget):  # type: ignore[misc]
    """Drawn to the right of a map, as high as the map."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._levels = Levels(0.0, 1.0)
        self.unit = ""
        self._special = (False, False, False)
        """Whether there are NaN and ±∞, and whether what is saturated is marked."""
        self._gaps = NONE
        self._look: tuple[Overview, int] | None = None
        self._over = self.held = False
        """Whether the mouse is over it, and whether keys move its ends."""
        self._drag: tuple[Span, str] | None = None
        """The ends when they were taken hold of, and which is dragged."""
        self._wanted: Span | None = None
        self._counts: npt.NDArray[np.int64] | None = None
        self._apply = QTimer(self, interval=APPLY_MS, singleShot=True)
        self._apply.timeout.connect(self._choose)
        self.map: Any = None
        """The map whose part in view the colours can follow, if there is one."""
        self._plot: Any = None
        """Whose height its gradient has, where it does not have all of its own."""
        self.setToolTip(TIP_TEXT)
        self.setCursor(Qt.CursorShape.SizeVerCursor)
        self.setMinimumHeight(40)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def lie_beside(self, plot: Any) -> None:
        """Make the gradient as high as what a plot of the same row draws, without its title and its axis."""
        self._plot = plot
        plot.vb.sigResized.connect(self._moved)

    def lie_by_map(self, item: Any) -> None:
        """Show the range of what a map has in view, where that is chosen."""
        self.map, item.in_view.followed = item, True
        item.in_view.changed.connect(self._moved)

    def _moved(self, *_: object) -> None:
        self.update()

    def set_levels(
        self, levels: Levels, unit: str, *, nan: bool = False, infinite: bool = False, gaps: Gaps = NONE,
        saturated: bool = False,
    ) -> None:  # fmt: skip
        """Show other limits; `nan`, `infinite`, the kinds of `gaps` and `saturated` add their looks to the legend."""
        shown = levels, clean(unit), (nan, infinite, saturated), gaps
        if shown != (self._levels, self.unit, self._special, self._gaps):
            self._levels, self.unit, self._special, self._gaps = shown
            self.update()

    def says_as(self, other: ColourBar) -> bool:
        """Whether another bar shows the same colours for the same numbers, and the same below them. What maps have in
        view differs, now or soon."""
        if self.map is not None and self.map.in_view.wanted:
            return False
        return (self.levels, self.unit, self._special, bool(self._gaps.missing), bool(self._gaps.damaged)) == (
            other.levels, other.unit, other._special, bool(other._gaps.missing), bool(other._gaps.damaged)
        )  # fmt: skip

    @property
    def given(self) -> Levels:
        """The colours that the panel draws where nothing is chosen."""
        return self._levels

    @property
    def levels(self) -> Levels:
        """The colours that are drawn: the given ones with what the user has chosen."""
        return chosen(self, self._levels if self.map is None else self.map.in_view.told(self._levels))

    # -- the range in the hand

    def count_from(self, look: Overview, columns: int) -> None:
        """Where the numbers are read whose histogram is drawn, once somebody looks."""
        self._look = look, columns

    @property
    def span(self) -> Span:
        """The ends of the colours, those that are dragged where they are."""
        return self._wanted or Span.of(self._levels, self.levels)

    @property
    def can_choose(self) -> bool:
        """Whether somebody keeps what is chosen."""
        return hasattr(self.scene(), "choose_colours")

    def in_words(self) -> str:
        """The range, for programs that read the screen."""
        of_view = f", {IN_SIGHT}" if self.levels.of_view else ""
        return in_words(self.span, log=self.levels.log, unit=self.unit) + of_view

    def hoverEvent(self, event: Any) -> None:
        """The mouse comes over it, or leaves."""
        over = not event.isExit() and self.can_choose
        if over:
            event.acceptDrags(Qt.MouseButton.LeftButton)
        if over != self._over:
            self._over = over
            self._show_in_hand()

    def hold(self, on: bool) -> None:
        """Keys move its ends from now on, or no longer."""
        self.held = on and self.can_choose
        self._show_in_hand()

    def _show_in_hand(self) -> None:
        if self.in_hand and self._look is not None:
            self._counts = counted(*self._look, self.span, log=self.levels.log)
        self.update()

    @property
    def in_hand(self) -> bool:
        """Whether all numbers are shown, with the ends to be moved."""
        return self._over or self.held or self._drag is not None

    def mouseDragEvent(self, event: Any) -> None:
        """The nearer end follows the mouse; between them both do."""
        if event.button() != Qt.MouseButton.LeftButton or not self.can_choose:
            event.ignore()
            return
        event.accept()
        bar = self._bar()
        if event.isStart() or self._drag is None:
            span = self.span
            at = span.at((bar.bottom() - event.buttonDownPos().y()) / bar.height())
            self._drag = span, span.nearest(at)
        span, end = self._drag
        by = (event.buttonDownPos().y() - event.pos().y()) / bar.height() * span.width
        if event.isFinish():
            self._drag = None
        self._want(span.moved(end, by), at_once=self._drag is None)
        if self._drag is None:
            self._show_in_hand()

    def mouseClickEvent(self, event: Any) -> None:
        """A double click: the range as usual."""
        if event.button() != Qt.MouseButton.LeftButton or not self.can_choose:
            event.ignore()
            return
        event.accept()
        if event.double():
            self.as_usual()

    def move_end(self, end: str, steps: int) -> None:
        """By keys: so many fiftieths of the axis."""
        span = self.span
        self._want(span.moved(end, steps * STEP * span.width), at_once=True)

    def as_usual(self) -> None:
        """The range that the panel chooses."""
        self._wanted = None
        self._store(replace(self._chosen(), span=DRAWN, low=0.0, high=1.0))

    def follow_view(self) -> None:
        """The range of what is in view, from now on."""
        if self.map is not None:
            self._wanted = None
            self._store(replace(self._chosen(), span=IN_VIEW, low=0.0, high=1.0))

    def keep_view(self, now: ColourChoice) -> None:
        """The range of what is in view at this moment, as two numbers that stay."""
        self.map.in_view.settle()
        if (limits := self.map.in_view.limits) is not None:
            span = replace(self.span, low=limits[0], high=limits[1])
            self._store(span.chosen(now, log=self.levels.log))

    def _want(self, span: Span, *, at_once: bool) -> None:
        self._wanted = span
        self.update()
        if at_once:
            self._choose()
        elif not self._apply.isActive():
            self._apply.start()

    def _choose(self) -> None:
        self._apply.stop()
        span, self._wanted = self._wanted, self._wanted if self._drag is not None else None
        if span is not None:
            self._store(span.chosen(self._chosen(), log=self.levels.log))

    def _chosen(self) -> ColourChoice:
        found: ColourChoice = self.scene().colours(self._levels.scale)
        return found

    def _store(self, choice: ColourChoice) -> None:
        self.scene().choose_colours(self._levels.scale, choice)
        self.update()

    def sizeHint(self, which: Qt.SizeHint, constraint: QSizeF = QSizeF()) -> QSizeF:  # noqa: B008 - Qt's signature
        """Narrow, as high as there is room."""
        return QSizeF(bar_width(), 16_000.0 if which == Qt.SizeHint.MaximumSize else 120.0)

    def changeEvent(self, event: QEvent) -> None:
        """Numbers of another size need another width."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def polishEvent(self) -> None:
        """Before it is seen first: what is hidden until then is not told of another font."""
        super().polishEvent()
        self.updateGeometry()

    def _line(self) -> float:
        """Pixels from one note to the next."""
        return max(15.0, QFontMetricsF(self.font()).height())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Gradient from the bottom (low) to the top (high), then the texts."""
        if widget is None and self.map is not None:
            self.map.in_view.told(self._levels, at_once=True)
        notes, bar = self._notes(), self._bar()
        painter.setFont(self.font())
        if self.in_hand and widget is not None:
            unit = "" if self.unit in ("", "1") else f" {self.unit}"
            log = self.levels.log
            paint_range(painter, bar, self.levels, self.span, self._counts, self.theme,
                        lambda value: _plain(10.0**value if log else value) + unit)  # fmt: skip
        else:
            self._paint_bar(painter, bar)
        self._paint_notes(painter, bar, notes)

    def _bar(self) -> QRectF:
        """Where the gradient is: beside what the plot draws, but for what the notes below need."""
        area: QRectF = self.boundingRect().adjusted(6, 8, -2, -8)
        notes = len(self._notes())
        bottom = area.bottom() - self._line() * notes - (6 if notes else 0)
        top = area.top()
        if self._plot is not None and self._plot.scene() is self.scene():
            drawn = self.mapRectFromScene(self._plot.vb.sceneBoundingRect())
            if drawn.height() >= LEAST:
                top, bottom = max(top, drawn.top()), min(bottom, drawn.bottom())
        return QRectF(area.left(), top, BAR, max(LEAST, bottom - top))

    def _paint_bar(self, painter: QPainter, bar: QRectF) -> None:
        """The colours from end to end."""
        levels = self.levels
        below, above = levels.beyond
        painter.drawImage(bar, _gradient(levels.colours or levels.scale))
        painter.setPen(QColor(self.theme.grid))
        painter.drawRect(bar)
        for there, end, tip in ((above, bar.top(), -TIP), (below, bar.bottom(), TIP)):
            if there:
                self._paint_tip(painter, QPointF(bar.center().x(), end), tip, LAST if tip < 0 else 0)
        painter.setPen(QColor(self.theme.muted))
        line = self._line() + 1
        for share, text in self._ticks():
            y = bar.bottom() - share * bar.height()
            painter.drawText(
                QRectF(bar.right() + 5, y - line / 2, bar_width(), line), Qt.AlignmentFlag.AlignVCenter, text
            )

    def _paint_notes(self, painter: QPainter, bar: QRectF, notes: list[tuple[QColor | None, str]]) -> None:
        """What else has a colour, below."""
        painter.setPen(QColor(self.theme.muted))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        line = self._line()
        for number, (colour, text) in enumerate(notes):
            y = bar.bottom() + 8 + line * number
            if colour is not None:
                box = QRectF(bar.left(), y + (line - 11) / 2, BAR, 9)
                if text == DAMAGED:
                    paint_gaps(painter, self.theme, (), (box,))
                elif text == SATURATED:
                    paint_key(painter, box, colour)
                else:
                    painter.fillRect(box, colour)
                painter.drawRect(box)
            painter.drawText(QRectF(bar.left() + (BAR + 5 if colour is not None else 0), y, bar_width(), line), 0, text)

    def _paint_tip(self, painter: QPainter, at: QPointF, tip: float, index: int) -> None:
        """An arrow at an end beyond which there are numbers, in the colour that they have."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor.fromRgb(int(self.levels.table[index if not self.levels.marked else BEYOND])))
        half = QPointF(BAR / 2, 0)
        painter.drawPolygon(QPolygonF([at - half, at + half, at + QPointF(0, tip)]))
        painter.restore()

    def _ticks(self) -> list[tuple[float, str]]:
        levels = self.levels
        low, high = levels.low, levels.high
        middle = low + (high - low) * (0.25 if levels.root else 0.5)
        values = [(0.0, low), (0.5, middle), (1.0, high)]
        unit = "" if self.unit in ("", "1") else f" {self.unit}"
        return [(share, _plain(10**v if levels.log else v) + (unit if share == 1.0 else "")) for share, v in values]

    def _notes(self) -> list[tuple[QColor | None, str]]:
        notes: list[tuple[QColor | None, str]] = []
        levels = self.levels
        table = levels.table
        share = f"{100 * levels.clipped:.2g} % " if levels.clipped > 0 else ""
        if levels.of_view:
            notes.append((None, IN_SIGHT))
        known = levels.full is not None  # limits may have been widened since what is beyond was counted
        beyond = any(levels.beyond) or (share and not known)
        if beyond and (levels.marked or not levels.of_view):  # what is beyond that is elsewhere: the arrows say it
            notes.append((QColor.fromRgb(int(table[BEYOND])) if levels.marked else None, f"{share}beyond"))
        if self._levels.masked:
            notes.append((QColor(self.theme.masked), "masked"))
        if self._special[0]:
            notes.append((QColor.fromRgb(int(table[NOT_A_NUMBER])), "NaN"))
        if self._special[1]:
            notes.append((QColor.fromRgb(int(table[INFINITE])), "±∞"))
        if self._special[2]:
            notes.append((QColor.fromRgb(int(table[LAST - 1])), SATURATED))
        if self._gaps.missing:
            notes.append((QColor(self.theme.grid), MISSING))
        if self._gaps.damaged:
            notes.append((QColor(self.theme.error), DAMAGED))
        return notes


@cache
def _gradient(scale: str) -> QImage:
    """The colours of a scale, a pixel each, the highest first."""
    column = np.ascontiguousarray(colour_table(scale)[LAST::-1, None])
    return QImage(column.data, 1, LAST + 1, 4, QImage.Format.Format_ARGB32_Premultiplied).copy()


def _plain(value: float) -> str:
    """Three digits, and a power of ten only where the number would not fit: "2000", not "2e+03"."""
    shown = short(value)
    return f"{float(shown):.0f}" if 1000 <= abs(value) < MOST_PLAIN else shown
