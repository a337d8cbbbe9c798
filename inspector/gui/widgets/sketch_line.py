"""The lines of a sketch at the size of a symbol: their form alone, without numbers."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from inspector.gui.widgets.sketch import Sketch, limits_of, paint_polyline
from inspector.gui.widgets.theme import Theme


def paint_line_only(sketch: Sketch, painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Draw the lines into a rectangle, from 0 (or less) to their greatest number."""
    painter.save()
    painter.setPen(QPen(QColor(theme.grid), 1))
    painter.drawLine(area.bottomLeft(), area.bottomRight())
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    left, right, low, high = limits_of(sketch)
    low = low if sketch.log else min(low, 0.0)  # without numbers at its side a line that hardly falls must look flat
    inner = area.adjusted(0, 2, 0, -2)
    for number, line in reversed(list(enumerate(sketch.lines))):
        x = inner.left() + (line.x - left) / (right - left) * inner.width()
        y = inner.bottom() - (line.y - low) / (high - low) * inner.height()
        paint_polyline(painter, np.asarray(x), np.asarray(y), QColor(theme.series[number % len(theme.series)]))
    painter.restore()
