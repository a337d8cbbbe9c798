"""The two texts at the left of the status row: what happened, and what is shown."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from inspector.gui.widgets.cut_label import CutLabel

BESIDE, MOST = 0.4, 0.8
"""Where what is shown begins, as a share of the width: beside a short sentence, and beside the longest."""
GAP = 8
"""Pixels between the two."""
SPARE = 6
"""Pixels beside the letters: what a label leaves free, and the fractions that its text is rounded by."""


class StatusTexts(QWidget):
    """The sentence has the room that it needs, what is shown the rest: the title bar names that too.

    One widget for both: a status bar hides its widgets under a message of its own (what an entry of a menu does), and
    one that is shown meanwhile would stand over that message.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sentence, self.what = CutLabel(), CutLabel()
        for label in (self.sentence, self.what):
            label.setParent(self)
        self.what.setAccessibleName("What is shown")
        self.what.setEnabled(False)  # quiet: it is there to be looked up
        self.what.hide()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def show_sentence(self, text: str) -> None:
        """Another sentence."""
        self.sentence.show_text(text)
        self._place()

    def sizeHint(self) -> QSize:
        """A line's height; the width is what the row has left."""
        return QSize(0, max(self.sentence.sizeHint().height(), self.what.sizeHint().height()))

    def minimumSizeHint(self) -> QSize:
        """It never makes the window wider."""
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The row has another width."""
        super().resizeEvent(event)
        self._place()

    def show_what(self, text: str) -> None:
        """What is shown; where nothing is, the sentence has the whole row."""
        self.what.setVisible(bool(text))
        self.what.show_text(text)
        self._place()

    def _place(self) -> None:
        width, height = self.width(), self.height()
        line = " ".join(self.sentence.whole.split("\n"))
        needed = self.sentence.fontMetrics().horizontalAdvance(line) + SPARE + GAP
        left = width if self.what.isHidden() else round(min(max(needed, BESIDE * width), MOST * width))
        self.sentence.setGeometry(0, 0, max(0, left - GAP), height)
        self.what.setGeometry(left, 0, max(0, width - left), height)
