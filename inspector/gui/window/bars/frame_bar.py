"""Which frame of a capture is shown: one of them, or the difference of the second from the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QListView, QPushButton, QWidget

from inspector.capture import Capture
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.plain_text import clean, plain_label

if TYPE_CHECKING:
    from inspector.records import Frame

NEWEST, DIFFERENCE = -1, -2
Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()


class FrameLines(QAbstractListModel):
    """A line for each frame, and one for the difference of two; its words are made when it is drawn."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._frames: tuple[Frame, ...] = ()

    def show_frames(self, frames: tuple[Frame, ...]) -> None:
        """Other frames."""
        self.beginResetModel()
        self._frames = frames
        self.endResetModel()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        """Lines."""
        return 0 if parent.isValid() else len(self._frames) + (len(self._frames) == 2)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The words of a line."""
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) or not index.isValid():
            return None
        if index.row() >= len(self._frames):
            return "difference of the two"
        frame = self._frames[index.row()]
        return clean(f"{frame.index}: {frame.label}")


class FrameBar(QWidget):
    """Hidden while there is one frame. `chosen(frame)`: an index, or DIFFERENCE; `forgotten()` drops the edits."""

    chosen = Signal(int)
    forgotten = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.frames = CutBox()
        self._lines = FrameLines(self)
        self.frames.setModel(self._lines)
        self.frames.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.frames.setStyleSheet(
            "QComboBox { combobox-popup: 0; }"
        )  # a list that scrolls: no line out of view is read
        popup = QListView()
        popup.setUniformItemSizes(True)  # so that opening it does not measure 50,000 lines
        self.frames.setView(popup)
        self.frames.setAccessibleName("Which frame is shown")
        self.frames.activated.connect(self._choose)
        self.plain = QPushButton("Run without edits")
        self.plain.clicked.connect(self.forgotten)
        self._shown: tuple[Frame, ...] = ()
        self._places: list[int] = []
        self._low = False
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
        self._see()
        self.plain.setVisible(len(frames) == 2 and frames[0].step == frames[1].step)  # else moments of a training
        self._lines.show_frames(frames)
        self._places = [frame.index for frame in frames] + [DIFFERENCE] * (len(frames) == 2)
        at = -1 if self.following else self._place_of(before)
        self.frames.setCurrentIndex(at if at >= 0 else len(frames) - 1)

    def give_way(self, low: bool) -> None:
        """In a low window frames are chosen on the timeline alone, apart from the two of an edited run."""
        self._low = low
        self._see()

    def _see(self) -> None:
        count = len(self._shown)
        self.setVisible(count == 2 or (count > 2 and not self._low))

    def begin(self, *, another: bool = True) -> None:
        """Another capture: its newest frame is followed. Of the same model the bar stays as it is until there are its
        frames, so that nothing moves; of `another`, which may have none, as a log, nothing of the one before stays."""
        self.following, self._shown = True, ()
        if another:
            self._lines.show_frames(())
            self._places = []
            self._see()

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
        if 0 <= frame < len(self._places) and self._places[frame] == frame:  # mostly: 50,000 are not looked through
            return frame
        return self._places.index(frame) if frame in self._places else -1

    @Slot(int)
    def _choose(self, _index: int) -> None:
        self.following = bool(self._shown) and self.current == self._shown[-1].index
        self.chosen.emit(self.current)
