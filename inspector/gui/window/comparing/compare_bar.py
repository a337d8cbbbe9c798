"""With which frame of which capture the one that is shown is compared, and how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip

if TYPE_CHECKING:
    from inspector.records import Frame

CHANGE, SIDES = "change", "sides"
WAYS = {CHANGE: "difference or ratio", SIDES: "side by side"}
WORDS = "Compared with"
MOST_REASONS = 20
FRAME_LETTERS = 8
BESIDE_FRAMES, ALONE = 112, 230
"""Most pixels of a name: a bar as wide as long names are would squeeze the bars at the sides of the window."""


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
        self.frames, self.way = QComboBox(), QComboBox()
        self.frames.setAccessibleName("With which frame it is compared")
        self.way.setAccessibleName("How it is compared")
        for way, text in WAYS.items():
            self.way.addItem(text, way)
        self.frames.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.frames.setMinimumContentsLength(FRAME_LETTERS)
        for box in (self.frames, self.way):
            box.activated.connect(self._choose)
        self.said = CutLabel()
        self.all = QPushButton("All channels…")
        self.all.clicked.connect(self.listed)
        self.first = QPushButton("First difference…")
        self.first.setToolTip(tooltip("The first operation, iteration and parameter that differ beyond rounding"))
        self.first.clicked.connect(self.parting)
        self.end = QPushButton("Stop comparing")
        self.end.clicked.connect(self.ended)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        for widget, share in ((self.name, 0), (self.frames, 1), (plain_label("as"), 0), (self.way, 0)):
            row.addWidget(widget, share)
        row.addWidget(self.said, 1)
        row.addWidget(self.all)
        row.addWidget(self.first)
        row.addWidget(self.end)
        self._shown: tuple[Frame, ...] = ()
        self.hide()

    def offer(self, path: Path, frames: Sequence[Frame], frame: int, *, itself: bool) -> None:
        """Show with what is compared, another frame of what is shown (`itself`) or a capture, and its frames."""
        self.name.show_text(WORDS if itself else f"{WORDS} {path.name}")
        whole = self.name.fontMetrics().horizontalAdvance(self.name.whole) + 4
        self.name.setMinimumWidth(min(whole, BESIDE_FRAMES if len(frames) > 1 else ALONE))
        if tuple(frames) != self._shown:
            self._shown = tuple(frames)
            self.frames.clear()
            for one in frames:
                self.frames.addItem(clean(f"frame {one.index}: {one.label}"), one.index)
        self.frames.setVisible(len(frames) > 1)
        self.frames.setCurrentIndex(self.frames.findData(frame))
        self.show()

    def tell(self, sentence: str, reasons: Sequence[str]) -> None:
        """What was compared, and in the tooltip, where it is never cut, also why some was not."""
        self.said.show_text(sentence)
        more = [f"… and {len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
        self.said.setToolTip(tooltip("\n".join([sentence, *reasons[:MOST_REASONS], *more])))

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
        self.chosen.emit()
