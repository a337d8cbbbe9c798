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
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(plain_label("Frame"))
        row.addWidget(self.frames, 1)
        row.addWidget(self.plain)
        self.hide()

    def show_capture(self, capture: Capture | None) -> None:
        """Offer the frames of a capture; with a second one the difference is offered too."""
        frames = capture.frames if capture is not None else ()
        if frames == self._shown:
            return
        self._shown = frames
        self.setVisible(len(frames) > 1)
        self.plain.setVisible(not any("sweep" in frame.meta for frame in frames))  # checkpoints, no edits
        before = self.frames.currentData()
        self.frames.clear()
        for frame in frames:
            self.frames.addItem(clean(f"{frame.index}: {frame.label}"), frame.index)
        if len(frames) == 2:
            self.frames.addItem("difference of the two", DIFFERENCE)
        at = self.frames.findData(before)
        self.frames.setCurrentIndex(at if at >= 0 and before != frames[0].index else len(frames) - 1)

    @property
    def current(self) -> int:
        """The frame that is shown, DIFFERENCE, or NEWEST where there is one frame."""
        return NEWEST if len(self._shown) < 2 else int(self.frames.currentData())

    @Slot(int)
    def _choose(self, _index: int) -> None:
        self.chosen.emit(self.current)
