"""Marks over a heatmap: a line through the cells where a second array is not zero; the map shows above and below."""

from __future__ import annotations

import numpy as np
from PySide6.QtGui import QColor, QImage

from inspector.gui.widgets.heatmap import Heatmap
from inspector.gui.widgets.theme import LAST, Theme

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
        half = LAST // 2
        self._table = [0] * half + [colour.rgba()] * (256 - half)
        self._cache = None
        self.update()

    def _render(self, first: int, stop: int, cells: int, height: int) -> tuple[QImage, tuple[int, int]]:
        image, cut = super()._render(first, stop, cells, height)
        rows, columns = image.height(), image.width()
        if rows * THIRDS > height:
            return image, cut
        whole = np.frombuffer(image.constBits(), np.uint8).reshape(rows, image.bytesPerLine())[:, :columns]
        lines = np.zeros((rows * THIRDS, columns), np.uint8)
        lines[THIRDS // 2 :: THIRDS] = whole
        thin = QImage(lines.data, columns, len(lines), columns, QImage.Format.Format_Indexed8)
        thin.setColorTable(self._table)
        return thin.copy(), cut
