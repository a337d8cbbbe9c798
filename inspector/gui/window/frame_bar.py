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
        for frame in frames:
            self.frames.addItem(clean(f"{frame.index}: {frame.label}"), frame.index)
        if len(frames) == 2:
            self.frames.addItem("difference of the two", DIFFERENCE)
        at = -1 if self.following else self.frames.findData(before)
        self.frames.setCurrentIndex(at if at >= 0 else len(frames) - 1)

    def begin(self) -> None:
        """Another capture: its newest frame is followed."""
        self.following, self._shown = True, ()

    def choose(self, frame: int) -> None:
        """Show a frame, as if it had been chosen in the list."""
        self.frames.setCurrentIndex(self.frames.findData(frame))
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
        chosen = self.frames.currentData()
        return NEWEST if len(self._shown) < 2 or chosen is None else int(chosen)

    @Slot(int)
    def _choose(self, _index: int) -> None:
        self.following = bool(self._shown) and self.current == self._shown[-1].index
        self.chosen.emit(self.current)
