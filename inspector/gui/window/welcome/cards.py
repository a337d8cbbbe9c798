"""One thing that can be opened, as a button: a small picture, a name and a line."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from inspector.gui.widgets.cards import Card
from inspector.gui.widgets.kind_picture import paint_kind
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.sketch import Sketch
from inspector.gui.widgets.sketch_line import paint_line_only

MARGIN = 6
PICTURE = 34
"""Pixels of a symbol along each side, beside a name and its line at the usual size of type."""
LEAST = QSize(300, 46)


class OpenCard(Card):
    """A name in bold above a line in muted type; both end in … where they are too long."""

    def __init__(self, name: str, line: str, whole: str = "", kind: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name, self.line, self.kind = clean(name), clean(line), kind
        self.sketch: Sketch | None = None
        self.setText(f"{self.name}: {self.line}" if line else self.name)
        self.setAccessibleName(self.text())
        self.setToolTip(tooltip(whole or self.text()))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Two lines of type."""
        return QSize(LEAST.width(), max(LEAST.height(), 2 * self.fontMetrics().height() + 2 * MARGIN))

    def show_sketch(self, sketch: Sketch) -> None:
        """A picture of its numbers, in the place of a symbol."""
        self.sketch = sketch
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ground, picture, name, line."""
        painter = QPainter(self)
        self.paint_ground(painter)
        left = MARGIN + 2
        if self.kind or self.sketch is not None:
            box = QRectF(left, (self.height() - PICTURE) / 2, PICTURE, PICTURE)
            if self.sketch is not None:
                paint_line_only(self.sketch, painter, box, self.theme)
            else:
                paint_kind(self.kind, painter, box, self.theme)
            left += PICTURE + MARGIN + 2
        self._paint_texts(painter, QRect(left, 0, self.width() - left - MARGIN, self.height()))
        painter.end()

    def _paint_texts(self, painter: QPainter, room: QRect) -> None:
        bold = QFont(self.font())
        bold.setBold(True)
        high = self.fontMetrics().height()
        top = room.top() + (room.height() - (2 if self.line else 1) * high) // 2
        for text, font, colour in ((self.name, bold, self.theme.text), (self.line, self.font(), self.theme.muted)):
            painter.setFont(font)
            painter.setPen(QColor(colour))
            cut = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(QRect(room.left(), top, room.width(), high), int(Qt.AlignmentFlag.AlignVCenter), cut)
            top += high
