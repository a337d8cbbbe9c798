"""The timeline with its controls: play, follow the newest frame, which curves are lanes, which frame is shown."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from inspector.capture import Capture, CaptureError
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.training.timeline import TimelineView
from inspector.gui.window.training.timeline_data import MOST_LANES, TimelineData, first_lanes, read
from inspector.gui.window.what_is_shown import least_to_largest, place_of

PLAY_MS = 400
"""Time between two frames while they are played."""
READ_SECONDS = 0.2
"""A run that grows is read at most so often."""
MOST_OFFERED = 60
"""Curves that the menu of lanes lists."""


class TimelineBar(QWidget):
    """`needed(False)` while there is one frame, or that and an edited one, and no series. `chosen(frame)`;
    `following(on)`; `ranged(low, high)` and `whole()`, `opened(iteration)` as in TimelineView."""

    needed = Signal(bool)
    chosen = Signal(int)
    following = Signal(bool)
    ranged = Signal(float, float)
    whole = Signal()
    opened = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.view = TimelineView()
        self.play = QToolButton()
        self.play.setText("Play")
        self.play.setCheckable(True)
        self.play.setToolTip(tooltip("Show the frames one after the other"))
        self.play.toggled.connect(self._play)
        self.follow = QCheckBox("Follow the newest")
        self.follow.setChecked(True)
        self.follow.setToolTip(tooltip("Show each new frame of a run that grows; an older frame that is chosen stays"))
        self.follow.clicked.connect(self.following)
        self.lanes = QPushButton("Lanes")
        self.menu = QMenu(self)
        self.menu.aboutToShow.connect(self._offer_lanes)
        self.lanes.setMenu(self.menu)
        self.shown = CutLabel()
        self._timer = QTimer(self, interval=PLAY_MS)
        self._timer.timeout.connect(self._on)
        self._later = QTimer(self, interval=round(1000 * READ_SECONDS), singleShot=True)
        self._later.timeout.connect(self._read)
        self._capture: Capture | None = None
        self._chosen_lanes: list[str] | None = None
        self._read_at = 0.0
        self._arrange()
        for signal, own in (
            (self.view.chosen, self._choose),
            (self.view.ranged, self.ranged),
            (self.view.whole, self.whole),
            (self.view.opened, self.opened),
        ):
            signal.connect(own)

    def _arrange(self) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(8, 2, 8, 2)
        row.setSpacing(12)
        for widget in (self.play, self.follow, self.lanes):
            row.addWidget(widget)
        row.addWidget(self.shown, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.view.set_theme(theme)

    # -- what is shown

    def show_capture(self, capture: Capture | None, frame: int, *, follow: bool) -> None:
        """Show the timeline of a capture, or its growth; `frame`: the one that is shown."""
        if capture is not self._capture:
            self._capture, self._read_at, self._chosen_lanes = capture, 0.0, None
            self.view.range = None
            self.play.setChecked(False)
        self.follow.setChecked(follow)
        self.view.current = frame
        if time.monotonic() - self._read_at >= READ_SECONDS:
            self._read()
        elif not self._later.isActive():
            self._later.start()

    @Slot()
    def _read(self) -> None:
        self._read_at = time.monotonic()
        data = self._data()
        several = len(data.frames) > 1
        for widget in (self.play, self.follow):
            widget.setVisible(several)
        self.lanes.setVisible(bool(data.offered))
        self.view.show_data(data, self.view.current)
        self._say()
        alone = self._capture is not None and any(frame.edited for frame in self._capture.frames[1:2])
        self.needed.emit(not data.empty and not (alone and not data.offered))  # the frame bar has the two of an edit

    def _data(self) -> TimelineData:
        """What is there; without lanes where a curve cannot be read, which its panel says."""
        if self._capture is None:
            return TimelineData()
        try:
            return read(self._capture, self._chosen_lanes)
        except CaptureError:
            return read(self._capture, [])

    def _say(self) -> None:
        """Which frame is shown."""
        frames = self.view.data.source
        place = place_of(frames, self.view.current)
        if place is None or len(frames) < 2 or self._capture is None:
            self.shown.show_text("")
            return
        here = frames[place]
        label = f": {here.label}" if here.label else ""
        self.shown.show_text(f"frame {here.index} of {least_to_largest(self._capture)}{label}")

    # -- lanes

    def _offer_lanes(self) -> None:
        self.menu.clear()
        offered = self.view.data.offered
        shown = self._chosen_lanes if self._chosen_lanes is not None else self._first()
        for key, name in offered[:MOST_OFFERED]:
            action = self.menu.addAction(clean(name).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(key in shown)
            action.toggled.connect(lambda on, key=key: self.choose_lane(key, on=on))
        if len(offered) > MOST_OFFERED:
            self.menu.addAction(f"and {len(offered) - MOST_OFFERED:,} more: see Training").setEnabled(False)

    def _first(self) -> list[str]:
        from inspector.capture import curves_of
        from inspector.capture.curves import SERIES

        if self._capture is None:
            return []
        return [c.key for c in first_lanes([c for c in curves_of(self._capture) if c.channel.kind == SERIES])]

    def choose_lane(self, key: str, *, on: bool) -> None:
        """One curve more, or less; of too many the oldest goes."""
        before = self._chosen_lanes if self._chosen_lanes is not None else self._first()
        wanted = [one for one in before if one != key] + ([key] if on else [])
        self._chosen_lanes = wanted[-MOST_LANES:]
        self._read()

    # -- frames

    @Slot(int)
    def _choose(self, frame: int) -> None:
        self._say()
        self.chosen.emit(frame)

    @Slot(bool)
    def _play(self, on: bool) -> None:
        """Begin, from the first frame where the newest is shown, or stop."""
        self.play.setText("Stop" if on else "Play")
        if not on:
            self._timer.stop()
            return
        if self._at_end():
            self._go(0)
        self._timer.start()

    def _at_end(self) -> bool:
        frames = self.view.data.frames
        return not frames or self.view.current in (-1, frames[-1][0].index)

    def _go(self, at: int) -> None:
        frames = self.view.data.frames
        if 0 <= at < len(frames):
            self.view._choose(frames[at][0].index)

    @Slot()
    def _on(self) -> None:
        place = place_of(self.view.data.source, self.view.current)
        if self._at_end() or place is None:
            self.play.setChecked(False)
        else:
            self._go(place + 1)
