"""One line of plain text that is cut where there is no space for it."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._shorter: tuple[str, ...] = ()

    def show_text(self, text: str, shorter: Sequence[str] = ()) -> None:
        """Other text; `shorter`: what says less and is seen where the text does not fit, the longest first."""
        if clean(text) != self.whole or tuple(shorter) != self._shorter:
            self.whole, self._shorter = clean(text), tuple(shorter)
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
        metrics, room = self.fontMetrics(), max(0, self.contentsRect().width() - 2)
        lines = [" ".join(clean(text).split("\n")) for text in (self.whole, *self._shorter)]
        line = next((one for one in lines if metrics.horizontalAdvance(one) <= room), lines[-1])
        self.setText(metrics.elidedText(line, Qt.TextElideMode.ElideRight, room))
