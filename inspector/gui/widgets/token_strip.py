"""The sequence as a strip of tokens, coloured by any number that each step has; only what is in view is painted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFocusEvent, QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QWidget

from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.described import InWords, Role, value_changed
from inspector.gui.widgets.even_edges import EvenEdges
from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.images.quantise import levels_of
from inspector.gui.widgets.numbers import number, with_fewer_digits
from inspector.gui.widgets.plain_text import clean, token, tooltip
from inspector.gui.widgets.strip_ends import paint_more
from inspector.gui.widgets.strip_range import StripRange
from inspector.gui.widgets.theme import INFINITE, Theme, colour_table, mixed, readable_on
from inspector.records import STEP_DOMAIN

NO_SEQUENCE = "no sequence yet"
SHADES = 64
DOUBLE = " · double-click to put in another token"
BESIDE = 90
"""Pixels of the sequence that stay in view before and after the cursor's step, where there are any."""


class TokenStrip(InWords, QWidget):
    """One box a step; the cursor's box is framed and kept in view. `editing()` after a double-click on a box."""

    editing = Signal()
    accessible_role = Role.Slider
    aligned = Qt.AlignmentFlag.AlignCenter
    """Position of a text in its box."""

    def __init__(self, cursor: Cursor | Looking, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cursor_, self.theme = cursor, theme
        self.word, self.editable = STEP_DOMAIN, True
        """The name of a position; whether another token can be put in here."""
        self._names: Sequence[str] = ()
        self._steps = 0
        self._edges: npt.NDArray[np.int64] | EvenEdges = EvenEdges(0, 1)
        self._shade: npt.NDArray[np.int16] | None = None
        self._special: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        """Of each step the colour of ±∞ or NaN, by its number in a colour table; 0 for a finite number."""
        self._gaps = NONE
        self._noted: frozenset[int] = frozenset()
        self._matched: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Which steps match what was looked for."""
        self._pins: dict[int, int] = {}
        """Step → number of a pin."""
        self._left = 0
        self._caption = ""
        self._values: npt.NDArray[Any] | None = None
        self.nothing = NO_SEQUENCE
        """What is said where there are no steps."""
        self._diverging = False
        self._pointed = False
        self._awaited = False
        """Whether the cursor is at a step that the sequence has not come to yet."""
        self._scrolled = False
        """Whether the user has scrolled since the cursor moved, who may look at another place than the cursor's."""
        self._before: tuple[tuple[str, ...], int, int] | None = None
        """(names, steps, left edge) of the run before, while another one comes to as many steps."""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("The sequence, step by step")
        self.range = StripRange(self)
        cursor.moved.connect(self._follow)
        shared = cursor.cursor if isinstance(cursor, Looking) else cursor
        shared.fixing.connect(self._show_fixed)

    def sizeHint(self) -> QSize:
        """One line of text and its frame."""
        return QSize(400, QFontMetrics(self.font()).height() + 14)

    minimumSizeHint = sizeHint

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def mark(self, noted: Collection[int]) -> None:
        """Mark the steps on which a note was written."""
        if frozenset(noted) != self._noted:
            self._noted = frozenset(noted)
            self.update()

    def show_pins(self, pins: Sequence[tuple[int, int]]) -> None:
        """Frame these steps, (step, number of the pin) each."""
        if dict(pins) != self._pins:
            self._pins = dict(pins)
            self.update()

    def show_matches(self, ranges: Sequence[tuple[int, int]], steps: int) -> None:
        """Underline the steps of these ranges, (first, last) each."""
        self._matched = np.zeros(steps, np.bool_)
        for first, last in ranges:
            self._matched[first : last + 1] = True
        self.update()

    def set_sequence(self, names: Sequence[str], steps: int) -> None:
        """Other tokens, or more of them; without names the steps are numbered."""
        if names is self._names and steps == self._steps:
            return
        if names and steps == self._steps and self._before is None and not self._awaited and names == self._names:
            return  # they are read anew whenever the capture has grown, by whatever it is
        if steps < self._steps and self._before is None:
            self._before = tuple(self._names), self._steps, self._left
        both = min(len(names), len(self._names))  # more of the same, or another run of it, which begins anew
        goes_on = tuple(names[:both]) == tuple(self._names[:both]) and (both > 0 or steps >= self._steps)
        self._names, self._steps = names, steps
        metrics = QFontMetrics(self.font())
        if names:
            width = {name: metrics.horizontalAdvance(token(name)[:24]) + 8 for name in set(names)}
            sizes = np.array([max(12, width[name]) for name in names], np.int64)
            self._edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        else:
            self._edges = EvenEdges(steps, metrics.horizontalAdvance(str(max(0, steps - 1))) + 8)
        self._left = min(self._left, max(0, int(self._edges[-1]) - self.width()))
        if self._runs_again():
            return
        if self._awaited or not goes_on:  # one that only grows stays where the user has scrolled it to
            self._bring_into_view(self.cursor_.position.step)
        self.update()

    def _runs_again(self) -> bool:
        """Whether this is the run before once more, as far as it has come: it is scrolled to where that was."""
        if self._before is None:
            return False
        names, steps, left = self._before
        both = min(len(names), len(self._names))
        if tuple(self._names[:both]) != names[:both] or (bool(names) != bool(self._names) and self._steps):
            self._before, self._awaited = None, True
            return False
        self._left = min(left, max(0, int(self._edges[-1]) - self.width()))
        self._awaited = False
        if self._steps >= steps:
            self._before = None
        self.update()
        return True

    def set_values(
        self,
        values: npt.NDArray[Any] | None,
        caption: str,
        scale: str = "sequential",
        gaps: Gaps = NONE,
        without: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Colour by these numbers (one a step), or not at all; a diverging scale has a colour for each sign.

        `gaps` are the steps of which the number is not known, which are covered as in the maps; steps that by
        definition have no number (`without`) have no colour, not that of NaN.
        """
        self._gaps = gaps if values is not None else NONE
        self._values = values
        self._caption, self._diverging = caption, scale == "diverging"
        self._special = np.zeros(0, np.uint8)
        if values is None or not len(values):
            self._shade = None
        else:
            index = (
                levels_of(values, "diverging" if self._diverging else "sequential", None).index(values).astype(np.int16)
            )
            self._shade = np.where(index > 252, -1, index * SHADES // 256).astype(np.int16)
            self._special = np.where(index >= INFINITE, index, 0).astype(np.uint8)
            if without is not None:
                self._special[without] = 0
        self.update()

    def step_at(self, x: int) -> int | None:
        """The step under a horizontal position, or None."""
        step = int(self._edges.searchsorted(x + self._left, side="right")) - 1
        return step if 0 <= step < len(self._edges) - 1 else None

    def paintEvent(self, event: QPaintEvent) -> None:
        """The boxes in view."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self.theme.base))
        if len(self._edges) < 2:
            painter.setPen(QColor(self.theme.muted))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.nothing)
            return
        first = max(0, int(self._edges.searchsorted(self._left, side="right")) - 1)
        last = min(len(self._edges) - 2, int(self._edges.searchsorted(self._left + self.width())))
        for step in range(first, last + 1):
            left, right = int(self._edges[step]) - self._left, int(self._edges[step + 1]) - self._left
            self.paint_step(painter, step, QRect(left, 3, right - left, self.height() - 6), 1, self.name_of(step))
        paint_more(painter, self.rect(), self.more, self.theme)

    @property
    def more(self) -> tuple[bool, bool]:
        """Whether the sequence goes on to the left of what is in view, and to its right."""
        end = int(self._edges[len(self._edges) - 1]) if len(self._edges) > 1 else 0
        return self._left > 0, end - self._left > self.width()

    def name_of(self, step: int) -> str:
        """The text of a step's box: its token, else its number."""
        return token(self._names[step])[:24] if step < len(self._names) else str(step)

    def paint_step(self, painter: QPainter, step: int, box: QRect, gap: int, text: str) -> None:
        """One step: its colour, its text, and a frame where the cursor is."""
        low, share = QColor(self.theme.base), self._share(step)
        high = QColor(self.theme.series[1] if share is not None and share < 0 else self.theme.accent)
        share = None if share is None else abs(share)
        colour = mixed(low, high, share) if share is not None else self._without(step)
        painter.fillRect(box.adjusted(gap, 0, -gap, 0), colour)
        self._cover(painter, step, QRectF(box.adjusted(gap, 0, -gap, 0)))
        painter.setPen(readable_on(colour) if colour != QColor(self.theme.raised) else QColor(self.theme.text))
        painter.drawText(box, self.aligned, text)
        if step in self._noted:
            self._paint_note(painter, box)
        if step < len(self._matched) and self._matched[step]:
            painter.fillRect(QRect(box.left(), box.bottom() - 2, box.width(), 3), QColor(self.theme.series[1]))
        self.range.paint(painter, step, box)
        if step in self._pins:
            self._paint_pin(painter, box, self._pins[step])
        if step == self.cursor_.position.step:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self.theme.cursor), 3 if self.fixed else 1))
            painter.drawRect(box.adjusted(0, 0, -1, -1))

    @property
    def fixed(self) -> bool:
        """Whether the cursor stays where it is when the mouse moves over a plot."""
        shared = self.cursor_.cursor if isinstance(self.cursor_, Looking) else self.cursor_
        return shared.fixed

    def _paint_pin(self, painter: QPainter, box: QRect, number: int) -> None:
        """A dashed frame, with the number in a corner where there is room for it."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self.theme.accent), 1, Qt.PenStyle.DashLine))
        painter.drawRect(box.adjusted(0, 0, -1, -1))
        if min(box.width(), box.height()) >= 10:
            usual, small = painter.font(), painter.font()
            small.setPixelSize(9)
            painter.setFont(small)
            painter.setPen(QColor(self.theme.text))
            corner = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
            painter.drawText(box.adjusted(1, -1, 0, 0), corner, str(number))
            painter.setFont(usual)

    def _paint_note(self, painter: QPainter, box: QRect) -> None:
        """A corner that is folded."""
        size = min(8, box.width(), box.height())
        right = box.right() + 1
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.theme.cursor))
        painter.drawPolygon(
            [QPoint(right - size, box.top()), QPoint(right, box.top()), QPoint(right, box.top() + size)]
        )

    def _without(self, step: int) -> QColor:
        """The colour of a step that has no finite number: those of ±∞ and NaN are the same as in the maps."""
        special = int(self._special[step]) if step < len(self._special) else 0
        return QColor.fromRgb(int(colour_table("sequential")[special])) if special else QColor(self.theme.raised)

    def _cover(self, painter: QPainter, step: int, box: QRectF) -> None:
        """Grey where a step's number has not come, hatched where it is damaged."""
        missing, damaged = (
            [box] if any(first <= step < stop for (first, stop), _ in rects) else []
            for rects in (self._gaps.missing, self._gaps.damaged)
        )
        if missing or damaged:
            paint_gaps(painter, self.theme, missing, damaged)

    def _share(self, step: int) -> float | None:
        """The position of a step's number on the scale: 0 … 1, or −1 … 1 on a diverging scale;
        None where it is not finite."""
        if self._shade is None or step >= len(self._shade) or self._shade[step] < 0:
            return None
        share = float(self._shade[step]) / SHADES
        return 2 * share - 1 if self._diverging else share

    def _follow(self, new: Position, old: Position) -> None:
        if new.step != old.step:
            self._before, self._scrolled = None, False
            self._bring_into_view(new.step)
            value_changed(self)
        self.update()

    @Slot(bool)
    def _show_fixed(self, _fixed: bool) -> None:
        self.update()

    def _bring_into_view(self, step: int | None) -> None:
        """Scroll to a step, now or as soon as the sequence has come as far."""
        self._awaited = step is not None and step + 1 >= len(self._edges)
        if step is None or self._awaited:
            return
        left, right = int(self._edges[step]), int(self._edges[step + 1])
        beside = 0 if self._pointed else min(BESIDE, self.width() // 3)  # nothing moves away from the mouse
        last = max(0, int(self._edges[-1]) - self.width())
        if left < self._left + beside:
            self._left = max(0, min(self._left, left - beside))
        elif right > self._left + self.width() - beside:
            self._left = min(last, right - self.width() + beside)

    def at(self, point: QPoint) -> int | None:
        """The step under a point, or None."""
        return self.step_at(point.x())

    def where(self, step: int) -> str:
        """The position of a step, if it has more than its number; in a line it has not."""
        return ""

    def named(self, step: int) -> str:
        """A step as in the tooltip: "step 3 'a'"."""
        name = clean(repr(self._names[step])) if step < len(self._names) else ""
        return f"{self.word} {step} {name}".strip()

    def value_in_words(self) -> str:
        """The cursor's step, its token, and the number by which it is coloured."""
        step = self.cursor_.position.step
        if not self._steps:
            return self.nothing
        if step is None or step >= self._steps:
            return f"{self._steps} steps, the cursor is at none"
        values = self._values
        known = values is not None and step < len(values)
        coloured = (
            f", {self._caption} {with_fewer_digits(number(values[step]))}" if known and values is not None else ""
        )
        return f"{self.named(step)} of {self._steps}{coloured}"

    def about_in_words(self) -> str:
        """How the cursor is moved."""
        return "Left and right move the cursor, Home and End to the ends; Ctrl and a drag choose steps for the table"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click moves the cursor and fixes it there; with Shift it pins the step; with Ctrl a range begins."""
        step = self.at(event.position().toPoint())
        if step is None or self.range.pressed(event, step):
            return
        shared = self.cursor_.cursor if isinstance(self.cursor_, Looking) else self.cursor_
        self._go_to(step)
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            pins_of(shared).add(shared.position)
        else:
            shared.fix(True)  # else it would be gone as soon as the mouse passes over a plot

    def _go_to(self, step: int) -> None:
        """The cursor goes to the step under the mouse, without scrolling."""
        self._pointed = True
        self.cursor_.move(step=step)
        self._pointed = False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A double-click requests another token where the cursor went with its first click."""
        on_step = self.at(event.position().toPoint()) is not None
        if self.editable and on_step and event.button() == Qt.MouseButton.LeftButton:
            self.editing.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """The cursor follows a drag; a tooltip describes the step under the mouse."""
        step = self.at(event.position().toPoint())
        if step is None:
            return
        self.setToolTip(tooltip(f"{self.named(step)} {self._caption}{DOUBLE if self.editable else ''}".strip()))
        if event.buttons() & Qt.MouseButton.LeftButton and not self.range.moved(step):
            self._go_to(step)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The end of a range, if one was drawn."""
        if not self.range.released():
            super().mouseReleaseEvent(event)

    def resizeEvent(self, _event: object) -> None:
        """The cursor stays in view in a narrower strip, unless the user has scrolled away from it."""
        step, last = self.cursor_.position.step, max(0, int(self._edges[-1]) - self.width())
        self._left = min(self._left, last)
        if step is None or step + 1 >= len(self._edges) or self._scrolled:
            return
        if not self._left <= self._edges[step] <= self._edges[step + 1] <= self._left + self.width():
            self._bring_into_view(step)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Keys and the player move along this axis from now on."""
        if isinstance(self.cursor_, Looking):
            self.cursor_.focus()
        super().focusInEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll along the sequence."""
        delta = event.angleDelta().x() or event.angleDelta().y()
        self._before, self._scrolled = None, True
        self._left = min(max(0, self._left - delta), max(0, int(self._edges[-1]) - self.width()))
        self.update()
