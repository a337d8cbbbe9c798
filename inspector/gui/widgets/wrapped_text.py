"""A few lines of text in a figure that wrap to its width; a plot's own title would make the figure wider."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsSceneResizeEvent, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean_block
from inspector.gui.widgets.theme import LIGHT, Theme

MARGIN = 8.0


class WrappedText(pg.GraphicsWidget):  # type: ignore[misc]
    """Plain text, wrapped at words, as high as it needs and at least `lines` lines; `muted` for secondary text."""

    def __init__(self, theme: Theme = LIGHT, *, lines: int = 2, points: float = 9.0, muted: bool = False) -> None:
        super().__init__()
        self.theme, self.muted = theme, muted
        self.text = ""
        font = QFont(self.font())
        font.setPointSizeF(points)
        self.setFont(font)
        self.least = lines * QFontMetricsF(font).lineSpacing()
        self.setFixedHeight(self.least + 4)
        self.setMinimumWidth(0)

    def set_text(self, text: str) -> None:
        """Other text; line breaks stay."""
        self.text = clean_block(text)
        self._make_room()
        self.update()

    def resizeEvent(self, event: QGraphicsSceneResizeEvent) -> None:
        """Another width wraps to other lines."""
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        width = self.size().width() - 2 * MARGIN
        if width <= 0:
            return  # not laid out yet
        flags = int(Qt.TextFlag.TextWordWrap)
        needed = QFontMetricsF(self.font()).boundingRect(QRectF(0, 0, width, 1e6), flags, self.text).height()
        height = max(self.least, needed) + 4
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The text, from the left as titles of plots are."""
        painter.setFont(self.font())
        painter.setPen(QColor(self.theme.muted if self.muted else self.theme.text))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(self.boundingRect().adjusted(MARGIN, 0, -MARGIN, 0), int(flags), self.text)
