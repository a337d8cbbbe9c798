"""Columns of plain text inside a figure, so that they are exported with it."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LIGHT, Theme

MARGIN = 12.0


class TextColumns(pg.GraphicsWidget):  # type: ignore[misc]
    """Each column has a heading and lines; a line that is too long is cut with an ellipsis."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self.columns: list[tuple[str, list[str]]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_columns(self, columns: list[tuple[str, list[str]]]) -> None:
        """Show other text."""
        if columns != self.columns:
            self.columns = columns
            self.setMinimumHeight(self._height())
            self.setMaximumHeight(self._height())
            self.updateGeometry()
            self.update()

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() * 1.25

    def _height(self) -> float:
        lines = max((len(lines) for _, lines in self.columns), default=0)
        return self._line() * (lines + 1) + MARGIN if lines else 0.0

    def sizeHint(self, which: Qt.SizeHint, constraint: QSizeF = QSizeF()) -> QSizeF:  # noqa: B008 - Qt's signature
        """As wide as there is room, as high as the lines."""
        return QSizeF(16_000.0 if which == Qt.SizeHint.MaximumSize else 120.0, self._height())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Headings, then lines, column beside column."""
        area, height = self.boundingRect(), self._line()
        width = (area.width() - MARGIN) / max(1, len(self.columns))
        painter.setFont(self.font())
        metrics = QFontMetricsF(self.font())
        for number, (heading, lines) in enumerate(self.columns):
            left = area.left() + MARGIN + number * width
            for row, text in enumerate([heading, *lines]):
                painter.setPen(QColor(self.theme.muted if row == 0 else self.theme.text))
                box = QRectF(left, area.top() + MARGIN / 2 + row * height, width - MARGIN, height)
                shown = metrics.elidedText(clean(text), Qt.TextElideMode.ElideRight, box.width())
                painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
