"""Pieces of the sequence as lines of text: each a heading, and a passage in which one part is highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QGraphicsSceneMouseEvent, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LIGHT, Theme

HEADING = 150.0
MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class TextRow:
    """`heading` on the left; then text with its `marked` middle between `before` and `after`. All of it plain."""

    heading: str
    before: str
    marked: str
    after: str


class TextRows(pg.GraphicsWidget):  # type: ignore[misc]
    """As many rows as there is room for, under a title. `chosen(index)` on a click."""

    chosen = Signal(int)

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._title = ""
        self._rows: Sequence[TextRow] = ()
        self.setMinimumHeight(64)

    def set_rows(self, title: str, rows: Sequence[TextRow]) -> None:
        """Other lines."""
        self._title, self._rows = title, rows
        self.update()

    def _height(self) -> float:
        return QFontMetricsF(self.font()).height() + 4

    def row_at(self, y: float) -> int | None:
        """The row at a height, or None."""
        index = int(y // self._height()) - 1
        return index if 0 <= index < min(len(self._rows), self._room()) else None

    def _room(self) -> int:
        return max(0, int((self.boundingRect().height() - MARGIN) // self._height()) - 1)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Title, then rows; the marked part has its own background and is in the middle of all rows."""
        font, bold = QFont(self.font()), QFont(self.font())
        bold.setBold(True)
        height, width = self._height(), self.boundingRect().width()
        painter.setFont(font)
        painter.setPen(QColor(self.theme.text))
        flag = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(MARGIN, 0, width - 2 * MARGIN, height), flag, clean(self._title))
        ground = QColor(self.theme.accent)
        ground.setAlphaF(0.22)
        metrics, wide = QFontMetricsF(font), QFontMetricsF(bold)
        left = MARGIN + HEADING
        for index, row in enumerate(self._rows[: self._room()]):
            top = (index + 1) * height
            box = QRectF(left, top, width - left - MARGIN, height)
            marked = wide.elidedText(clean(row.marked), Qt.TextElideMode.ElideMiddle, box.width() * 0.5)
            size = wide.horizontalAdvance(marked)
            middle = QRectF(left + box.width() * 0.4 - min(size / 2, box.width() * 0.4), top, size, height)
            painter.setPen(QColor(self.theme.muted))
            painter.drawText(QRectF(MARGIN, top, HEADING - 10, height), flag, clean(row.heading))
            before = QRectF(left, top, middle.left() - left - 2, height)
            text = metrics.elidedText(clean(row.before), Qt.TextElideMode.ElideLeft, before.width())
            painter.drawText(before, flag | Qt.AlignmentFlag.AlignRight, text)
            after = QRectF(middle.right() + 2, top, box.right() - middle.right() - 2, height)
            text = metrics.elidedText(clean(row.after), Qt.TextElideMode.ElideRight, after.width())
            painter.drawText(after, flag, text)
            painter.fillRect(middle.adjusted(-1, 1, 1, -1), ground)
            painter.setFont(bold)
            painter.setPen(QColor(self.theme.text))
            painter.drawText(middle, flag, marked)
            painter.setFont(font)

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        """A click chooses a row."""
        index = self.row_at(event.pos().y())
        if event.button() == Qt.MouseButton.LeftButton and index is not None:
            self.chosen.emit(index)
            event.accept()
