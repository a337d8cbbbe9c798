"""Which frame of a capture is shown: one of them, or the difference of the second from the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QWidget

from inspector.capture import Capture
from inspector.gui.widgets.plain_text import clean, plain_label

if TYPE_CHECKING:
    from inspector.records import Frame

NEWEST, DIFFERENCE = -1, -2


class FrameBar(QWidget):
    """Hidden while there is one frame. `chosen(frame)`: an index, or DIFFERENCE; `forgotten()` drops the edits."""

    chosen = Signal(int)
    forgotten = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.frames = QComboBox()
        self.frames.setAccessibleName("Which frame is shown")
        self.frames.activated.connect(self._choose)
        self.plain = QPushButton("Run without edits")
        self.plain.clicked.connect(self.forgotten)
        self._shown: tuple[Frame, ...] = ()
        self._places: list[int] = []
        self.following = True
        """Whether the newest frame is shown as it comes; an older one that was chosen stays."""
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(plain_label("Frame"))
        row.addWidget(self.frames, 1)
        row.addWidget(self.plain)
        self.hide()

    def show_capture(self, capture: Capture | None) -> None:
        """Offer the frames of a capture; with a second one the difference is offered too."""
        frames = tuple(capture.frames) if capture is not None else ()
        if frames == self._shown:
            return
        before = self.current
        self._shown = frames
        self.setVisible(len(frames) > 1)
        self.plain.setVisible(len(frames) == 2 and frames[0].step == frames[1].step)  # else moments of a training
        self.frames.clear()
        self.frames.addItems([clean(f"{frame.index}: {frame.label}") for frame in frames])  # 50,000 at once
        self._places = [frame.index for frame in frames]
        if len(frames) == 2:
            self.frames.addItem("difference of the two")
            self._places.append(DIFFERENCE)
        at = -1 if self.following else self._place_of(before)
        self.frames.setCurrentIndex(at if at >= 0 else len(frames) - 1)

    def begin(self) -> None:
        """Another capture: its newest frame is followed."""
        self.following, self._shown = True, ()

    def choose(self, frame: int) -> None:
        """Show a frame, as if it had been chosen in the list."""
        self.frames.setCurrentIndex(self._place_of(frame))
        self._choose(0)

    def follow(self, on: bool) -> None:
        """Follow the newest frame from now on, or stay."""
        self.following = on
        if on and self._shown and self.current != self._shown[-1].index:
            self.frames.setCurrentIndex(len(self._shown) - 1)
            self.chosen.emit(self.current)

    @property
    def current(self) -> int:
        """The frame that is shown, DIFFERENCE, or NEWEST where there is one frame."""
        at = self.frames.currentIndex()
        return NEWEST if len(self._shown) < 2 or not 0 <= at < len(self._places) else self._places[at]

    @property
    def places(self) -> tuple[int, ...]:
        """What each line of the list stands for: an index of a frame, or DIFFERENCE."""
        return tuple(self._places)

    def _place_of(self, frame: int) -> int:
        """The line of a frame; -1 for one that is not listed."""
        return self._places.index(frame) if frame in self._places else -1

    @Slot(int)
    def _choose(self, _index: int) -> None:
        self.following = bool(self._shown) and self.current == self._shown[-1].index
        self.chosen.emit(self.current)
