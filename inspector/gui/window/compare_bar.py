"""With which frame of which capture the one that is shown is compared, and how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QWidget

from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip

if TYPE_CHECKING:
    from inspector.records import Frame

CHANGE, SIDES = "change", "sides"
WAYS = {CHANGE: "difference or ratio", SIDES: "side by side"}
MOST_REASONS = 20


class CompareBar(QWidget):
    """Hidden while nothing is compared. `chosen()`: another frame or another way; `ended()`; `listed()`: the list of
    all channels is asked for."""

    chosen = Signal()
    ended = Signal()
    listed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = plain_label("")
        self.frames, self.way = QComboBox(), QComboBox()
        self.frames.setAccessibleName("With which frame it is compared")
        self.way.setAccessibleName("How it is compared")
        for way, text in WAYS.items():
            self.way.addItem(text, way)
        for box in (self.frames, self.way):
            box.activated.connect(self._choose)
        self.said = CutLabel()
        self.all = QPushButton("All channels…")
        self.all.clicked.connect(self.listed)
        self.end = QPushButton("Stop comparing")
        self.end.clicked.connect(self.ended)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        for widget in (self.name, self.frames, plain_label("as"), self.way):
            row.addWidget(widget)
        row.addWidget(self.said, 1)
        row.addWidget(self.all)
        row.addWidget(self.end)
        self._shown: tuple[Frame, ...] = ()
        self.hide()

    def offer(self, path: Path, frames: Sequence[Frame], frame: int, *, itself: bool) -> None:
        """Show with what is compared, another frame of what is shown (`itself`) or a capture, and its frames."""
        self.name.setText("Compared with" if itself else f"Compared with {clean(path.name)}")
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
