"""Small drawings of what kinds of models are built like: boxes are layers or cells, lines are where numbers flow.

They are symbols, not measurements: nothing of a run is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from inspector.gui.widgets.theme import Theme

SIDE = 40.0
"""Units of a drawing along each side, whatever its size on screen."""
Draw = Callable[[QPainter, Theme], None]


def paint_kind(kind: str, painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Draw the symbol of a kind into a square; a kind without one of its own is a plain cell."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    side = min(area.width(), area.height())
    painter.translate(area.center().x() - side / 2, area.center().y() - side / 2)
    painter.scale(side / SIDE, side / SIDE)
    painter.setPen(QPen(QColor(theme.muted), 1.6))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    DRAWN.get(kind, _cell)(painter, theme)
    painter.restore()


def _box(painter: QPainter, x: float, y: float, width: float, height: float, colour: str) -> None:
    painter.save()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawRoundedRect(QRectF(x, y, width, height), 2, 2)
    painter.restore()


def _cell(painter: QPainter, theme: Theme) -> None:
    painter.drawLine(QLineF(20, 38, 20, 2))
    _box(painter, 13, 13, 14, 14, theme.series[0])


def _elman(painter: QPainter, theme: Theme) -> None:
    _cell(painter, theme)
    loop = QPainterPath(QPointF(20, 8))
    loop.cubicTo(QPointF(40, 4), QPointF(40, 34), QPointF(27, 23))
    painter.drawPath(loop)


def _gated(painter: QPainter, theme: Theme) -> None:
    painter.drawLine(QLineF(1, 12, 39, 12))
    _box(painter, 6, 18, 28, 16, theme.series[0])
    for x in (12.0, 20.0, 28.0):
        painter.drawLine(QLineF(x, 18, x, 12))
        painter.save()
        painter.setBrush(QColor(theme.series[1]))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QPointF(x, 12), 3.2, 3.2)
        painter.restore()


def _space(painter: QPainter, theme: Theme) -> None:
    for number, height in enumerate((30.0, 22.0, 16.0, 11.0, 7.0, 4.0)):
        _box(painter, 2 + 6.2 * number, 35 - height, 4.2, height, theme.series[0])
    painter.drawLine(QLineF(1, 36, 39, 36))


def _deep(painter: QPainter, theme: Theme) -> None:
    painter.drawLine(QLineF(16, 38, 16, 2))
    for y in (5.0, 17.0, 29.0):
        _box(painter, 6, y, 20, 7, theme.series[0])
    skip = QPainterPath(QPointF(16, 38))
    skip.cubicTo(QPointF(40, 36), QPointF(40, 16), QPointF(16, 14))
    painter.drawPath(skip)


def _chain(painter: QPainter, theme: Theme, reads: str, says: str) -> None:
    """Four steps of a recurrent layer; a 1 where a step reads, or says something."""
    painter.drawLine(QLineF(3, 20, 37, 20))
    for number in range(4):
        x = 3.0 + 9.4 * number
        _box(painter, x, 16.5, 6.4, 7, theme.series[0])
        if reads[number] == "1":
            painter.drawLine(QLineF(x + 3.2, 24, x + 3.2, 35))
        if says[number] == "1":
            painter.drawLine(QLineF(x + 3.2, 5, x + 3.2, 16))


def _lengths(painter: QPainter, theme: Theme) -> None:
    _chain(painter, theme, "1111", "0001")


def _decoder(painter: QPainter, theme: Theme) -> None:
    _chain(painter, theme, "1100", "0011")
    painter.setPen(QPen(QColor(theme.series[1]), 1.4))
    arc = QPainterPath(QPointF(6, 16))
    arc.cubicTo(QPointF(10, 2), QPointF(20, 2), QPointF(25, 16))
    painter.drawPath(arc)


WEIGHTS = ((0.9, 0.3, 0.15, 0.1), (0.2, 0.7, 0.35, 0.1), (0.6, 0.1, 0.4, 0.2), (0.1, 0.2, 0.3, 1.0))
"""Opacities of the cells of a map of attention."""


def _attention(painter: QPainter, theme: Theme) -> None:
    strong = QColor(theme.series[0])
    for row, weights in enumerate(WEIGHTS):
        for column, weight in enumerate(weights):
            strong.setAlphaF(weight)
            painter.fillRect(QRectF(3 + 8.6 * column, 3 + 8.6 * row, 7.8, 7.8), strong)


def _transformer(painter: QPainter, theme: Theme) -> None:
    painter.drawLine(QLineF(8, 38, 8, 2))
    for y, colour in ((6.0, theme.series[0]), (23.0, theme.series[1])):
        _box(painter, 15, y, 20, 11, colour)
        painter.drawLine(QLineF(8, y + 10, 15, y + 10))
        painter.drawLine(QLineF(8, y + 1, 15, y + 1))


NODES = ((4.0, 20.0), (18.0, 9.0), (18.0, 31.0), (34.0, 4.0), (34.0, 15.0), (34.0, 31.0))
BRANCHES = ((0, 1), (0, 2), (1, 3), (1, 4), (2, 5))
CHOSEN = (0, 1, 4)
"""A tree of what was tried, and the way through it that was taken."""


def _decoding(painter: QPainter, theme: Theme) -> None:
    for parent, child in BRANCHES:
        painter.drawLine(QLineF(*NODES[parent], *NODES[child]))
    for number, (x, y) in enumerate(NODES):
        _box(painter, x - 3, y - 3, 6, 6, theme.series[0] if number in CHOSEN else theme.muted)


DRAWN: Mapping[str, Draw] = {
    "elman": _elman, "gated": _gated, "space": _space, "deep": _deep, "lengths": _lengths, "decoder": _decoder,
    "attention": _attention, "transformer": _transformer, "decoding": _decoding,
}  # fmt: skip
"""The drawing of each group of `workspace/sample_kinds.py`."""
