"""The ends of a strip behind which its sequence goes on."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter

from inspector.gui.widgets.theme import Theme

MORE = 12
"""Pixels of the mark that a sequence goes on beyond an end of the strip."""


def paint_more(painter: QPainter, strip: QRect, more: tuple[bool, bool], theme: Theme) -> None:
    """A mark at each end behind which there is more: (at the left, at the right)."""
    for there, left, mark in zip(more, (strip.left(), strip.left() + strip.width() - MORE), "‹›", strict=True):
        if there:
            box = QRect(left, strip.top(), MORE, strip.height())
            painter.fillRect(box, QColor(theme.raised))
            painter.setPen(QColor(theme.text))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, mark)
