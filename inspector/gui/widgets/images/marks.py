"""Marks over a heatmap: a line through the cells where a second array is not zero; the map shows above and below."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor

from inspector.gui.widgets.images.heatmap import Heatmap
from inspector.gui.widgets.theme import LAST, Theme

Array = npt.NDArray[Any]
ALPHA = 0.9
THIRDS = 3
"""A mark takes the middle one of so many parts of a row, where rows are high enough to be divided."""


class Marks(Heatmap):
    """A heatmap of zeros and ones whose zeros are not drawn, laid over another one of the same cells."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setZValue(10)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """The colour of the cursor, half transparent."""
        colour = QColor(theme.cursor)
        colour.setAlphaF(ALPHA)
        self._table = np.zeros(256, np.uint32)
        self._table[LAST // 2 :] = _premultiplied(colour)
        self._cache = None
        self.update()

    def _colour(self, height: int, low: Array, high: Array) -> npt.NDArray[np.uint32]:
        whole = super()._colour(height, low, high)
        cells, rows = whole.shape
        if rows * THIRDS > height:
            return whole
        lines = np.zeros((cells, rows * THIRDS), np.uint32)
        lines[:, THIRDS // 2 :: THIRDS] = whole
        return lines


def _premultiplied(colour: QColor) -> int:
    """ARGB with the colours multiplied by the opacity, as an image stores it."""
    share = colour.alphaF()
    red, green, blue = (round(share * part) for part in (colour.red(), colour.green(), colour.blue()))
    return int(colour.alpha() << 24 | red << 16 | green << 8 | blue)
