"""Bars of the products of one query and one key by dimension, whose sum is their score."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
BAR = 0.8
"""Width of a bar, of a dimension."""


class PairPlot(StepPlot):
    """Products above 0 in the first colour of the theme, below 0 in the second; or a line that says why there are
    none."""

    def __init__(self, theme: Theme) -> None:
        self.bars = pg.BarGraphItem(x=[], height=[], width=BAR)
        super().__init__(None, theme, label="q·k", bottom="dimension")
        self.addItem(self.bars)
        self.products: Array = np.zeros(0)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        if hasattr(self, "products"):
            self._draw()

    def show_pair(self, title: str, products: Array, second: str = "") -> None:
        """Bars by dimension under a title, with a second line where there is one; no products, no bars."""
        self.set_title(title, second)
        self.products = np.asarray(products, dtype=np.float64)
        for side in ("left", "bottom"):
            self.getAxis(side).setVisible(bool(len(products)))
        self._draw()

    def _draw(self) -> None:
        values = np.where(np.isfinite(self.products), self.products, 0.0)
        brushes = [pg.mkBrush(self.theme.series[0 if value >= 0 else 1]) for value in values]
        self.bars.setOpts(x=np.arange(len(values)), height=values, width=BAR, brushes=brushes, pen=pg.mkPen(None))
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        room = 0.06 * (high - low) or 1.0
        self.vb.setRange(xRange=(-0.5, max(1, len(values)) - 0.5), yRange=(low - room, high + room), padding=0)
