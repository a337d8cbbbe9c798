"""The range of a colour bar in the hand: its ends on an axis of all numbers, beside how many lie where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPolygonF

from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colour_span import Span
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.theme import Theme

HANDLE, WIDTH, LINE, TEXT = 6.0, 40.0, 256, 14.0
"""Pixels of a handle, of the longest bar of the histogram, of the gradient, and of the height of a text."""


def paint_range(
    painter: QPainter, bar: QRectF, levels: Levels, span: Span, counts: npt.NDArray[np.int64] | None, theme: Theme,
    said: Callable[[float], str],
) -> None:  # fmt: skip
    """Gradient over the whole axis, the histogram beside it, both ends with their numbers."""
    if counts is not None:
        _paint_counts(painter, bar, counts, theme)
    painter.drawImage(bar, _gradient(levels, span))
    painter.setPen(QColor(theme.grid))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(bar)
    ends = [bar.bottom() - span.share(value) * bar.height() for value in (span.low, span.high)]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for y in ends:
        tip = QPointF(bar.right() + 1, y)
        painter.setPen(QColor(theme.text))
        painter.drawLine(QPointF(bar.left(), y), tip)
        painter.setBrush(QColor(theme.text))
        painter.drawPolygon(QPolygonF([tip, tip + QPointF(HANDLE, -HANDLE / 2), tip + QPointF(HANDLE, HANDLE / 2)]))
    painter.restore()
    painter.setPen(QColor(theme.text))
    for y, value in zip(_apart(ends, bar), (span.low, span.high), strict=True):
        box = QRectF(bar.right() + HANDLE + 4, y - TEXT / 2, 98, TEXT)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, said(value))


def _apart(ends: list[float], bar: QRectF) -> list[float]:
    """Where the numbers of both ends are written: within the bar, the lower one below the higher one."""
    low, high = ends
    if low - high < TEXT:
        middle = (low + high) / 2
        low, high = middle + TEXT / 2, middle - TEXT / 2
    shift = min(0.0, bar.bottom() + TEXT / 2 - low) or max(0.0, bar.top() - TEXT / 2 - high)
    return [low + shift, high + shift]


def _paint_counts(painter: QPainter, bar: QRectF, counts: npt.NDArray[np.int64], theme: Theme) -> None:
    most = int(counts.max(initial=0))
    if not most:
        return
    colour = QColor(theme.muted)
    colour.setAlpha(110)
    high = bar.height() / len(counts)
    for n, share in enumerate(np.sqrt(counts / most)):  # a root: what is rare is seen beside what is frequent
        painter.fillRect(QRectF(bar.right() + 2, bar.bottom() - (n + 1) * high, WIDTH * share, max(1.0, high)), colour)


def _gradient(levels: Levels, span: Span) -> QImage:
    """The colours of the axis, the highest first."""
    at: npt.NDArray[Any] = span.first + span.width * (np.arange(LINE)[::-1] + 0.5) / LINE
    with np.errstate(all="ignore"):
        pixels = levels.table.take(levels.index(10.0**at if levels.log else at))
    column = np.ascontiguousarray(pixels[:, None])
    return QImage(column.data, 1, LINE, 4, QImage.Format.Format_ARGB32_Premultiplied).copy()


def in_words(span: Span, *, log: bool, unit: str) -> str:
    """Both ends, as a program reads them out."""
    low, high = (short(10.0**end if log else end) for end in (span.low, span.high))
    return f"colours from {low} to {high}{'' if unit in ('', '1') else f' {unit}'}"
