"""Attention as lines from queries to keys, for inputs short enough to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.theme import LIGHT, Theme

MOST = 48
FAINT = 0.02


class LinesView(pg.GraphicsWidget):  # type: ignore[misc]
    """Queries on the left, keys on the right; a line's strength is its weight, the cursor's query is highlighted.

    A query of which a weight is NaN, or not known, has a hatched mark.
    """

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._weights: npt.NDArray[Any] = np.zeros((0, 0))
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._query: int | None = None
        self._key: int | None = None

    def set_weights(self, weights: npt.NDArray[Any], queries: Sequence[str], keys: Sequence[str]) -> None:
        """Weights (query, key) and the names of both."""
        self._weights, self._names = weights, (queries, keys)
        self.update()

    def set_cursor(self, query: int | None, key: int | None) -> None:
        """Highlight the lines of one query, and the name of one key."""
        if (query, key) != (self._query, self._key):
            self._query, self._key = query, key
            self.update()

    def data_at(self, position: QPointF) -> tuple[float, float]:
        """(key, query) at a position of the item: a query on its left half, a key on its right; NaN for the other."""
        area = self.boundingRect()
        side = 0 if position.x() < area.center().x() else 1
        count = self._weights.shape[side]
        at = (position.y() - area.top()) / area.height() * count - 0.5 if count and area.height() > 0 else math.nan
        return (math.nan, at) if side == 0 else (at, math.nan)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Names, then lines."""
        area = self.boundingRect()
        if not self._weights.size:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        sides = (area.left() + 90, area.right() - 90)
        heights = [area.height() / max(1, n) for n in self._weights.shape]
        for side, (names, height) in enumerate(zip(self._names, heights, strict=True)):
            for i in range(self._weights.shape[side]):
                marked = i == (self._query, self._key)[side]
                painter.setPen(QColor(self.theme.cursor if marked else self.theme.text))
                box = QRectF(area.left() if side == 0 else sides[1] + 6, area.top() + i * height, 84, height)
                flag = Qt.AlignmentFlag.AlignRight if side == 0 else Qt.AlignmentFlag.AlignLeft
                painter.drawText(
                    box, flag | Qt.AlignmentFlag.AlignVCenter, token(names[i]) if i < len(names) else str(i)
                )
        unknown = np.flatnonzero(np.isnan(self._weights).any(axis=1)).tolist()
        stubs = [QRectF(sides[0], area.top() + i * heights[0], 24, max(2.0, heights[0] - 2)) for i in unknown]
        paint_gaps(painter, self.theme, (), stubs)  # no line from there would read as a weight of 0
        for i, row in enumerate(np.nan_to_num(self._weights)):
            colour = QColor(self.theme.cursor if i == self._query else self.theme.accent)
            for j in np.flatnonzero(row > FAINT):
                colour.setAlphaF(min(1.0, float(row[j])) * (1.0 if self._query in (None, i) else 0.15))
                painter.setPen(QPen(colour, 0.5 + 3 * float(row[j])))
                start = QPointF(sides[0], area.top() + (i + 0.5) * heights[0])
                painter.drawLine(start, QPointF(sides[1], area.top() + (j + 0.5) * heights[1]))
