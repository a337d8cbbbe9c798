"""The picture of the run before, pale, over a panel until the new run has something to show there."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

PALE = 0.35
MARGIN = 8
"""Pixels beside the line."""
WORDS = "The run before, until the new one is here"


class OldPicture(QWidget):
    """Lies over the pages of a panel; takes no mouse and no focus."""

    def __init__(self, pages: QWidget) -> None:
        super().__init__(pages)
        self.pages = pages
        self._picture = QPixmap()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(WORDS)
        pages.installEventFilter(self)
        self.hide()

    @property
    def shown(self) -> bool:
        """Whether it is there."""
        return not self.isHidden()

    def take(self) -> None:
        """Keep what the pages show now, where they are visible."""
        pages = self.pages
        if not pages.isVisible() or self.shown:
            return
        self._picture = pages.grab()
        self.setGeometry(pages.rect())
        self.show()
        self.raise_()

    def drop(self) -> None:
        """There is something newer."""
        if self.shown:
            self.hide()
            self._picture = QPixmap()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As large as the pages."""
        if event.type() == QEvent.Type.Resize and watched is self.pages:
            self.setGeometry(self.pages.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """The picture, pale on the colour of windows, and one line."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().window())
        painter.setOpacity(PALE)
        painter.drawPixmap(self.rect(), self._picture)
        painter.setOpacity(1.0)
        metrics = painter.fontMetrics()
        words = metrics.elidedText(WORDS, Qt.TextElideMode.ElideRight, self.width() - 2 * MARGIN)
        wide = metrics.horizontalAdvance(words) + 2 * MARGIN
        line = QRect(self.width() - wide, 0, wide, metrics.height() + MARGIN)
        painter.fillRect(line, self.palette().window())  # titles of the picture may be there
        painter.setPen(self.palette().windowText().color())
        painter.drawText(line, Qt.AlignmentFlag.AlignCenter, words)
        painter.end()
