"""One line of plain text that is cut where there is no space for it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from inspector.gui.widgets.plain_text import clean, tooltip


class CutLabel(QLabel):
    """It never makes the window wider; the tooltip has the full text."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.whole = ""

    def show_text(self, text: str) -> None:
        """Other text."""
        if clean(text) != self.whole:
            self.whole = clean(text)
            self.setToolTip(tooltip(self.whole))
            self._cut()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The width has changed."""
        super().resizeEvent(event)
        self._cut()

    def minimumSizeHint(self) -> QSize:
        """A line's height, and no width of its own."""
        return QSize(0, super().minimumSizeHint().height())

    def _cut(self) -> None:
        line = " ".join(self.whole.split("\n"))
        self.setText(
            self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, max(0, self.contentsRect().width() - 2))
        )
