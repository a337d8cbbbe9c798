"""Matches in a plot over steps: pale bands behind its lines, as high as the plot; over maps a bar along the top."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.images.heatmap import Heatmap
from inspector.gui.widgets.plots.gap_bands import GapBands

PALE, FAINTEST, BAR = 46, 60, 5
"""Opacity of a band and of the faintest bar, of 255; pixels of height of the bar along the top."""


class MatchBands(GapBands):
    """Ranges of steps, (first, last) each."""

    ranges: npt.NDArray[np.float64] = np.zeros((0, 2))

    def set_ranges(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Show others."""
        self.ranges = np.array(ranges, np.float64).reshape(-1, 2)
        self.setZValue(45)
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The ranges in view; those that are closer than a pixel as one."""
        seen, size = self.boundingRect(), self.pixelVectors()
        if not len(self.ranges) or size[0] is None or size[1] is None:
            return
        colour, pixel, bar = QColor(self.theme.series[1]), abs(size[0].x()), BAR * abs(size[1].y())
        top = seen.top() if painter.deviceTransform().m22() > 0 else seen.bottom() - bar
        mapped = self.over_map
        for low, high, share in self.joined(seen.left(), seen.right(), pixel):
            if not mapped:
                colour.setAlpha(round(PALE * share))
                painter.fillRect(QRectF(low, seen.top(), high - low, seen.height()), colour)
            colour.setAlpha(round(FAINTEST + (255 - FAINTEST) * share))
            painter.fillRect(QRectF(low, top, high - low, bar), colour)

    @property
    def over_map(self) -> bool:
        """Whether the plot has a map, whose colours are numbers: nothing may be laid over all of them."""
        box = self.getViewBox()
        return box is not None and any(isinstance(item, Heatmap) and item.isVisible() for item in box.addedItems)

    def joined(self, left: float, right: float, pixel: float) -> Any:
        """(bands, 3) of what is in view: begin, end, at least a pixel apart, and the share of it that matches."""
        low, high = self.ranges[:, 0] - 0.5, self.ranges[:, 1] + 0.5
        inside = (high > left) & (low < right)
        low, high = low[inside], np.maximum.accumulate(high[inside]) if inside.any() else high[inside]
        if not len(low):
            return np.zeros((0, 3))
        begins = np.concatenate(([True], low[1:] - high[:-1] >= pixel))
        ends = np.concatenate((begins[1:], [True]))
        first, last = np.maximum(low[begins], left), np.minimum(high[ends], right)
        covered = np.add.reduceat(self.ranges[inside, 1] - self.ranges[inside, 0] + 1, np.flatnonzero(begins))
        share = np.clip(covered / (high[ends] - low[begins]), 0, 1)
        return np.column_stack((first, np.maximum(last, first + pixel), share))
