"""The timeline below the panels: curves as thin lanes, frames and events as marks; dragging chooses the frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from inspector.gui.widgets.described import InWords, Role, value_changed
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.widgets.type_scale import small_points
from inspector.gui.window.training.timeline_data import Columns, Floats, Lane, TimelineData, columns
from inspector.gui.window.what_is_shown import place_of
from inspector.records import Event, Frame, counted

NAMES, RIGHT, LANE, STRIP, AXIS = 132, 14, 20, 18, 16
"""Pixels: of the names at the left, right of the axis, and heights of a lane, of the frames and events, of the axis."""
NEAR = 6.0
"""Pixels within which a mark is pointed at."""
OPENED = ("spike", "non-finite")
"""Kinds of events that a double-click opens."""
HEIGHTS = {740: 3, 640: 2, 0: 1}
"""Lanes that a window from so many pixels of height on has room for."""
BEYOND = 6
"""Pixels between marks of what goes beyond a lane."""
APART = 8.0
"""Pixels between frames of the same iteration (a run and an edited one)."""


class TimelineView(InWords, QWidget):
    """`chosen(frame index)` while the user drags or uses keys; `ranged(low, high)` for a range dragged with Shift, in
    iterations; `whole()` for a double-click; `opened(iteration)` for one on a spike."""

    accessible_role = Role.Slider
    chosen = Signal(int)
    ranged = Signal(float, float)
    whole = Signal()
    opened = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.theme = LIGHT
        self.data = TimelineData()
        self._room_for = max(HEIGHTS.values())
        """How many lanes a window of this height has room for."""
        self.current = self._before = -1
        self.range: tuple[float, float] | None = None
        self._from: float | None = None
        self._beside: tuple[Sequence[tuple[Frame, float]], Floats, Floats] | None = None
        """The frames, their places, and how many before each have the same: there may be 50,000."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Timeline: frames and events of the training")

    def show_data(self, data: TimelineData, current: int) -> None:
        """Draw another state of a capture, with this frame marked."""
        lanes = len(self.lanes)
        another = current != self.current
        self.data, self.current = data, current
        if another:
            value_changed(self)
        if lanes != len(self.lanes):
            self.updateGeometry()
        self.update()

    @property
    def lanes(self) -> Sequence[Lane]:
        """Those that are drawn: the first ones in a low window."""
        return self.data.lanes[: self._room_for]

    def allow(self, height: int) -> None:
        """The height of the window, of which the lanes take a part."""
        room = next(lanes for least, lanes in HEIGHTS.items() if height >= least)
        if room != self._room_for:
            self._room_for = room
            self.updateGeometry()
            self.update()

    def value_in_words(self) -> str:
        """The frame that is shown, and how many there are."""
        shown = next((frame for frame, _ in self.data.frames if frame.index == self.current), None)
        step = f", iteration {shown.step}" if shown is not None and shown.step is not None else ""
        chosen = f"frame {shown.index}: {clean(shown.label)}{step}" if shown is not None else "no frame chosen"
        return f"{chosen}, of {counted(len(self.data.frames), 'frame')}"

    def about_in_words(self) -> str:
        """The curves above the frames."""
        lanes = ", ".join(clean(lane.name) for lane in self.lanes)
        return f"Left and right choose a frame{f'; curves: {lanes}' if lanes else ''}"

    def sizeHint(self) -> QSize:
        """As many lanes as there are."""
        return QSize(600, LANE * len(self.lanes) + STRIP + AXIS)

    def minimumSizeHint(self) -> QSize:
        """Its height never changes with the space there is."""
        return QSize(200, self.sizeHint().height())

    # -- places

    @property
    def _room(self) -> float:
        return max(1.0, self.width() - NAMES - RIGHT)

    def x_of(self, place: float) -> float:
        """The pixel of an iteration."""
        return NAMES + (place - self.data.low) / (self.data.high - self.data.low) * self._room

    def place_of(self, x: float) -> float:
        """The iteration at a pixel."""
        share = min(1.0, max(0.0, (x - NAMES) / self._room))
        return self.data.low + share * (self.data.high - self.data.low)

    def frame_pixels(self) -> Floats:
        """(n,) the pixel of every frame; those of the same iteration beside each other."""
        if self._beside is None or self._beside[0] is not self.data.frames:
            self._beside = (self.data.frames, *_beside(self.data.frames))
        _, places, before = self._beside
        share = (places - self.data.low) / (self.data.high - self.data.low)
        return np.minimum(NAMES + share * self._room + before * APART, self.width() - 4.0)

    def frames_at(self) -> list[tuple[Frame, float]]:
        """Every frame with its pixel."""
        return list(zip((frame for frame, _ in self.data.frames), self.frame_pixels().tolist(), strict=True))

    def frame_near(self, x: float) -> Frame | None:
        """The frame nearest to a pixel."""
        if not self.data.frames:
            return None
        return self.data.frames[int(np.argmin(np.abs(self.frame_pixels() - x)))][0]

    # -- the mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The nearest frame; with Shift a range begins."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._from = self.place_of(event.position().x())
        else:
            self._before = self.current
            self._choose_near(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag through the frames, or a range; without a button what is there is said."""
        x = event.position().x()
        if self._from is not None:
            ends = sorted((self._from, self.place_of(x)))
            self.range = (ends[0], ends[1])
            self.update()
        elif event.buttons() & Qt.MouseButton.LeftButton:
            self._choose_near(x)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A range is complete."""
        if self._from is not None:
            self._from = None
            if self.range is not None and self.x_of(self.range[1]) - self.x_of(self.range[0]) > 2:
                self.ranged.emit(*self.range)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A spike, or the whole training again."""
        near = [one for one in self.data.events if one.kind in OPENED]
        spike = min(near, key=lambda one: abs(self.x_of(one.iteration) - event.position().x()), default=None)
        if spike is not None and abs(self.x_of(spike.iteration) - event.position().x()) <= NEAR:
            self.opened.emit(spike.iteration)
            return
        self.range = None
        self.update()
        if any(frame.index == self._before for frame, _ in self.data.frames):
            self._choose(self._before)  # its first click chose a frame, which nobody asked for
        self.whole.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right: the frame before and after; Home and End: the first and the newest."""
        indices = [frame.index for frame, _ in self.data.frames]
        at = indices.index(self.current) if self.current in indices else len(indices) - 1
        moves = {
            Qt.Key.Key_Left: at - 1, Qt.Key.Key_Right: at + 1, Qt.Key.Key_Home: 0, Qt.Key.Key_End: len(indices) - 1,
        }  # fmt: skip
        wanted = moves.get(Qt.Key(event.key()))
        if wanted is None or not indices:
            super().keyPressEvent(event)
            return
        self._choose(indices[min(max(0, wanted), len(indices) - 1)])

    def _choose_near(self, x: float) -> None:
        frame = self.frame_near(x)
        if frame is not None:
            self._choose(frame.index)

    def _choose(self, index: int) -> None:
        if index != self.current:
            self.current = index
            self.update()
            self.chosen.emit(index)

    def event(self, event: QEvent) -> bool:
        """A tooltip says what is marked where the mouse is."""
        if event.type() == QEvent.Type.ToolTip:
            said = self.said_at(event.pos().x())  # type: ignore[attr-defined]
            QToolTip.showText(event.globalPos(), tooltip(said), self)  # type: ignore[attr-defined]
            return True
        return super().event(event)

    def said_at(self, x: float) -> str:
        """Frames and events near a pixel, and the numbers of the lanes there."""
        near = [self.data.frames[n][0] for n in np.flatnonzero(np.abs(self.frame_pixels() - x) <= NEAR).tolist()]
        lines = [f"frame {frame.index}: {frame.label}" for frame in near]
        lines += [_said(one, self.data.word) for one in self.data.events if abs(self.x_of(one.iteration) - x) <= NEAR]
        place = self.place_of(x)
        for lane in self.lanes:
            at = int(np.searchsorted(lane.x, place, "right")) - 1
            if at >= 0:
                lines.append(f"{lane.name} [{self.data.word} {lane.x[at]:.15g}]: {short(lane.y[at], 4)}")
        return "\n".join(lines)

    # -- painting

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Lanes, then marks, then the axis."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self.theme.base))
        font = QFont(self.font())
        font.setPointSizeF(small_points())
        painter.setFont(font)
        if self.range is not None:
            shade = QColor(self.theme.accent)
            shade.setAlphaF(0.18)
            left, right = (self.x_of(place) for place in self.range)
            painter.fillRect(QRectF(left, 0, right - left, self.height() - AXIS), shade)
        for number, lane in enumerate(self.lanes):
            area = QRectF(NAMES, number * LANE, self._room, LANE)
            self._name(painter, area, lane.name)
            found = columns(lane, self.data.low, self.data.high, max(2, int(self._room)))
            self._lane(painter, area, found, QColor(self.theme.series[number]))
        top = float(LANE * len(self.lanes))
        self._name(painter, QRectF(NAMES, top, self._room, STRIP), "frames, events" if self.data.events else "frames")
        self._events(painter, top)
        self._frames(painter, top)
        self._axis(painter, top + STRIP)
        if self.hasFocus():
            painter.setPen(QColor(self.theme.accent))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _name(self, painter: QPainter, area: QRectF, text: str) -> None:
        painter.setPen(QColor(self.theme.muted))
        room = QRectF(8, area.top(), NAMES - 14, area.height())
        shown = QFontMetricsF(painter.font()).elidedText(clean(text), Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), shown)

    def _lane(self, painter: QPainter, area: QRectF, found: Columns, colour: QColor) -> None:
        """Minimum and maximum of every column, joined; a small triangle where it goes beyond the lane."""
        low, high = found.least, found.greatest
        painter.setPen(QPen(colour, 1))
        inner = area.adjusted(0, 3, 0, -3)
        x = inner.left() + np.arange(len(low))
        known = np.isfinite(low)
        tops, bottoms = (inner.bottom() - np.asarray(one) * inner.height() for one in (high, low))
        points = np.stack((np.repeat(x[known], 2), np.stack((tops[known], bottoms[known]), 1).reshape(-1)), 1)
        painter.drawPolyline(QPolygonF([QPointF(a, b) for a, b in points.tolist()]))

        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.theme.text))
        for beyond, edge, inwards in ((found.above, area.top(), 5.0), (found.below, area.bottom(), -5.0)):
            for at in _apart(np.flatnonzero(beyond), BEYOND):
                left, tip, right = (QPointF(inner.left() + at + n, edge + abs(n) * inwards / 4) for n in (-4, 0, 4))
                painter.drawPolygon(QPolygonF([left, tip, right]))
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _events(self, painter: QPainter, top: float) -> None:
        """A diamond for each event, in the colour of its sort, with a faint line through the lanes."""
        colours = {"non-finite": self.theme.error, "spike": self.theme.warning, "restart": self.theme.warning}
        others = [one for one in self.data.events if one.kind not in colours]
        for one in (*others, *(one for one in self.data.events if one.kind in colours)):  # what matters is on top
            colour, x = QColor(colours.get(one.kind, self.theme.muted)), self.x_of(one.iteration)
            faint = QColor(colour)
            faint.setAlphaF(0.35)
            painter.setPen(faint)
            painter.drawLine(QPointF(x, 0), QPointF(x, top))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            middle = top + STRIP / 2
            painter.drawPolygon(QPolygonF([QPointF(x, middle - 5), QPointF(x + 4, middle), QPointF(x, middle + 5),
                                           QPointF(x - 4, middle)]))  # fmt: skip
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _frames(self, painter: QPainter, top: float) -> None:
        """A tick for each frame; the one that is shown is thick and goes through the lanes."""
        every = self.frame_pixels()
        shown = place_of(self.data.source, self.current)
        painter.setPen(QPen(QColor(self.theme.text), 1))
        for x in one_a_pixel(every).tolist():
            painter.drawLine(QPointF(x, top + 4), QPointF(x, top + STRIP - 2))
        if shown is not None:
            painter.setPen(QPen(QColor(self.theme.cursor), 2))
            painter.drawLine(QPointF(every[shown], 0), QPointF(every[shown], top + STRIP - 2))

    def _axis(self, painter: QPainter, top: float) -> None:
        """The word of the axis, and its ends and a few places between, as far as they fit."""
        self._name(painter, QRectF(NAMES, top, self._room, AXIS), self.data.word)
        painter.setPen(QColor(self.theme.grid))
        painter.drawLine(QPointF(NAMES, top), QPointF(NAMES + self._room, top))
        painter.setPen(QColor(self.theme.muted))
        metrics, right = QFontMetricsF(painter.font()), -1.0
        for place in self.data.places(max(2.0, self._room / 90)):
            text = f"{place:,.10g}"
            width = metrics.horizontalAdvance(text)
            left = min(self.x_of(place) - width / 2, self.width() - width - 2)
            if left > right:
                painter.drawText(QPointF(left, top + AXIS - 4), text)
                right = left + width + 12


def _beside(frames: Sequence[tuple[Frame, float]]) -> tuple[Floats, Floats]:
    """(n,) the place of each frame, and how many frames before it have the same."""
    places = np.array([place for _, place in frames], np.float64)
    _, first, number = np.unique(places, return_index=True, return_inverse=True)
    if len(first) == len(places):
        return places, np.zeros(len(places))
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(len(first)))
    before = np.empty(len(places))
    before[order] = np.arange(len(places)) - starts[number[order]]
    return places, before


def one_a_pixel(pixels: Floats) -> Floats:
    """Of the places that share a pixel the last one: 50,000 lines over each other take a quarter of a second."""
    _, last = np.unique(np.round(pixels)[::-1], return_index=True)
    return pixels[::-1][last]


def _apart(places: npt.NDArray[np.int64], least: int) -> list[int]:
    """Some of the places, in order, so far apart that their marks do not cover each other."""
    found: list[int] = []
    for place in places.tolist():
        if not found or place - found[-1] >= least:
            found.append(place)
    return found


def _said(event: Event, word: str) -> str:
    """An event in one line."""
    return f"{event.kind} at {word} {event.iteration:,.10g}" + (f": {event.text}" if event.text else "")
