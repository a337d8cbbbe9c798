"""With which frame of which capture the one that is shown is compared, and how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, tooltip

if TYPE_CHECKING:
    from inspector.records import Frame

CHANGE, SIDES = "change", "sides"
WAYS = {CHANGE: "difference", SIDES: "side by side"}
EXPLAINED = {
    CHANGE: "What is shown minus the other; a ratio where numbers are read by their order of magnitude, as norms",
    SIDES: "Every panel twice, the other at the left",
}
WORDS, SHORT = "Compared with", "With"
"""In front of a name; the second where a list of frames stands beside it."""
MOST_REASONS = 20
FRAME_LETTERS, WIDEST_FRAME = 8, 210
"""Letters of a frame that are always seen, and pixels that its list takes at most."""
BESIDE_FRAMES, ALONE = 112, 230
"""Most pixels of a name: a bar as wide as long names are would squeeze the bars at the sides of the window."""


class FrameList(CutBox):
    """As wide as the frame that is chosen needs, where there is the room; its tooltip has it whole. Widths of all that
    it lists are not looked up: they may be 50,000."""

    def __init__(self) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(FRAME_LETTERS)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.currentIndexChanged.connect(self._changed)

    def sizeHint(self) -> QSize:
        """Of the text that is seen, within limits."""
        least, metrics = super().sizeHint(), self.fontMetrics()
        text = metrics.horizontalAdvance(self.currentText()) - FRAME_LETTERS * metrics.horizontalAdvance("X")
        return QSize(min(least.width() + max(0, text) + 4, max(least.width(), WIDEST_FRAME)), least.height())

    @Slot()
    def _changed(self) -> None:
        self.setToolTip(tooltip(self.currentText()))
        self.updateGeometry()


class CompareBar(QWidget):
    """Hidden while nothing is compared. `chosen()`: another frame or another way; `ended()`; `listed()`: the list of
    all channels is asked for; `parting()`: the first difference."""

    chosen = Signal()
    ended = Signal()
    listed = Signal()
    parting = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = CutLabel()
        self.name.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)  # no stretch: else no width
        self.frames, self.way = FrameList(), QComboBox()
        self.frames.setAccessibleName("With which frame it is compared")
        self.way.setAccessibleName("How it is compared")
        for way, text in WAYS.items():
            self.way.addItem(text, way)
            self.way.setItemData(self.way.count() - 1, EXPLAINED[way], Qt.ItemDataRole.ToolTipRole)
        self.way.setToolTip(tooltip(EXPLAINED[CHANGE]))
        for box in (self.frames, self.way):
            box.activated.connect(self._choose)
        self.said = CutLabel()
        self.all = QPushButton("All channels…")
        self.all.clicked.connect(self.listed)
        self.first = QPushButton("First difference…")
        self.first.setToolTip(tooltip("The first operation, iteration and parameter that differ beyond rounding"))
        self.first.clicked.connect(self.parting)
        self.end = QPushButton("Stop")
        self.end.setAccessibleName("Stop comparing")
        self.end.setToolTip(tooltip("Stop comparing: what is shown is shown alone again"))
        self.end.clicked.connect(self.ended)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        for widget in (self.name, self.frames, self.way):
            row.addWidget(widget)
        row.addWidget(self.said, 1)
        row.addWidget(self.all)
        row.addWidget(self.first)
        row.addWidget(self.end)
        self._shown: tuple[Frame, ...] = ()
        self.hide()

    def offer(self, path: Path, frames: Sequence[Frame], frame: int, *, itself: bool) -> None:
        """Show with what is compared, another frame of what is shown (`itself`) or a capture, and its frames."""
        words = SHORT if len(frames) > 1 and not itself else WORDS
        self.name.show_text(WORDS if itself else f"{words} {path.name}")
        whole = self.name.fontMetrics().horizontalAdvance(self.name.whole) + 4
        self.name.setFixedWidth(min(whole, BESIDE_FRAMES if len(frames) > 1 else ALONE))
        if tuple(frames) != self._shown:
            self._shown = tuple(frames)
            self.frames.clear()
            for one in frames:
                self.frames.addItem(clean(f"frame {one.index}: {one.label}"), one.index)
        self.frames.setVisible(len(frames) > 1)
        self.frames.setCurrentIndex(self.frames.findData(frame))
        self.frames.updateGeometry()
        self.show()

    def tell(self, sentence: str, reasons: Sequence[str], shorter: Sequence[str] = ()) -> None:
        """What was compared, or `shorter` where there is no room; in the tooltip all, and why some was not."""
        self.said.show_text(sentence, shorter)
        more = [f"… and {len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
        for widget in (self.said, self.all):  # where there is no room for the sentence, the button still tells it
            widget.setToolTip(tooltip("\n".join([sentence, *reasons[:MOST_REASONS], *more])))

    @property
    def frame(self) -> int:
        """The frame with which is compared."""
        found = self.frames.currentData()
        return -1 if found is None else int(found)

    @property
    def sides(self) -> bool:
        """Whether both are shown beside each other."""
        return bool(self.way.currentData() == SIDES)

    @Slot(int)
    def _choose(self, _index: int) -> None:
        self.way.setToolTip(tooltip(EXPLAINED[str(self.way.currentData())]))
        self.chosen.emit()
