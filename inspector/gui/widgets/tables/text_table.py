"""A table painted as text, for figures in files: headings, rows, numbers at the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from inspector.gui.widgets.theme import Theme

SPACE, BETWEEN, EDGE, LINE = 18.0, 10.0, 8.0, 1.35
"""Pixels added to the widest text of a column, between columns and at the edges; heights of text in a row."""


def paint_lines(
    painter: QPainter,
    rect: QRectF,
    lines: Sequence[Sequence[str]],
    theme: Theme,
    marked: Callable[[int, int], bool] = lambda row, column: False,
    longest: int = 1000,
) -> None:
    """Headings and then rows, made smaller where they would not fit into a rectangle. What is `marked(row, column)`,
    rows counted from 0 below the headings, has the colour of errors; of a text at most `longest` letters make its
    column wider, and what is longer is cut with an ellipsis."""
    metrics = QFontMetricsF(painter.font())
    widths = [max(metrics.horizontalAdvance(line[j][:longest]) for line in lines) + SPACE for j in range(len(lines[0]))]
    height = metrics.height() * LINE
    painter.save()
    painter.translate(rect.topLeft())
    scale = min(1.0, rect.width() / (sum(widths) + 2 * EDGE), rect.height() / (height * len(lines) + 2 * EDGE))
    painter.scale(scale, scale)
    for i, line in enumerate(lines):
        x = EDGE
        for j, text in enumerate(line):
            error = i > 0 and marked(i - 1, j)
            painter.setPen(QColor(theme.error if error else theme.text if i else theme.muted))
            side = Qt.AlignmentFlag.AlignRight if j else Qt.AlignmentFlag.AlignLeft
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, widths[j] - BETWEEN)
            painter.drawText(QRectF(x, EDGE + i * height, widths[j] - BETWEEN, height), side, shown)
            x += widths[j]
    painter.restore()
