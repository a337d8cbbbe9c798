"""The look of unknown cells: grey where they have not been written yet, hatched where they are damaged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from inspector.gui.widgets.theme import Theme

SPACING = 7.0
"""Pixels between the lines of a hatching."""
MOST_LINES = 4_000


def paint_gaps(painter: QPainter, theme: Theme, missing: Sequence[QRectF], damaged: Sequence[QRectF]) -> None:
    """Cover rectangles, given in the painter's coordinates: grey where data is missing, hatched where it is damaged."""
    for rect in missing:
        painter.fillRect(rect, QColor(theme.grid))
    if damaged:
        _hatch(painter, theme, damaged)


def _hatch(painter: QPainter, theme: Theme, rects: Sequence[QRectF]) -> None:
    """Diagonal lines as far apart on every screen and at every zoom, drawn in the device's own coordinates."""
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.WindingFill)
    for rect in rects:
        path.addRect(rect)
    painter.save()
    try:
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        painter.fillPath(path, QColor(theme.base))
        painter.setPen(QPen(QColor(theme.error), 0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        to_device = painter.transform()
        area = to_device.mapRect(path.boundingRect())
        seen = painter.viewport()
        area = area.intersected(QRectF(-seen.width(), -seen.height(), 3.0 * seen.width(), 3.0 * seen.height()))
        painter.setWorldMatrixEnabled(False)
        painter.drawLines(_diagonals(area))
    finally:
        painter.restore()


def _diagonals(area: QRectF) -> list[QLineF]:
    count = int((area.width() + area.height()) / SPACING) + 2
    gap = SPACING * max(1.0, count / MOST_LINES)
    first = math.floor((area.left() - area.height()) / gap)
    last = math.ceil(area.right() / gap)
    return [QLineF(n * gap, area.bottom(), n * gap + area.height(), area.top()) for n in range(first, last + 1)]
