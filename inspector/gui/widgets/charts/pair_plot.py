"""Bars of the products of one query and one key by dimension, whose sum is their score; or points, a key each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
BAR = 0.8
"""Width of a bar, of a dimension."""
POINT = 6
"""Pixels of a point."""


class PairPlot(StepPlot):
    """Products above 0 in the first colour of the theme, below 0 in the second; or a line that says why there are
    none; or two numbers of each key against each other."""

    def __init__(self, theme: Theme) -> None:
        self.bars = pg.BarGraphItem(x=[], height=[], width=BAR)
        self.points = pg.ScatterPlotItem(size=POINT, pen=None)
        super().__init__(None, theme, label="q·k", bottom="dimension")
        self.addItem(self.bars)
        self.addItem(self.points)
        self.products: Array = np.zeros(0)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        if hasattr(self, "products"):
            self._draw()

    def show_pair(self, title: str, products: Array, second: str = "") -> None:
        """Bars by dimension under a title, with a second line where there is one; no products, no bars."""
        self.points.setData([], [])
        self._begin((title, second), ("dimension", "q·k"), products)

    def show_points(self, title: str, across: Array, up: Array, names: tuple[str, str]) -> None:
        """A point for each of two arrays' finite numbers, with the names of the axes; none, no points."""
        known = np.isfinite(across) & np.isfinite(up)
        x, y = across[known].astype(np.float64), up[known].astype(np.float64)
        self._begin((title, ""), names, np.zeros(0), axes=bool(len(x)))
        self.points.setData(x, y, brush=pg.mkBrush(self.theme.series[0]))
        if len(x):
            self.vb.setRange(xRange=_around(x), yRange=_around(y), padding=0)

    def _begin(self, titles: tuple[str, str], names: tuple[str, str], products: Array, *, axes: bool = False) -> None:
        """Titles, names of the axes and bars; axes only where there is something along them."""
        self.set_title(*titles)
        self.label_bottom(names[0])
        self.label_left(names[1])
        self.step_axis.counts = not axes
        self.products = np.asarray(products, dtype=np.float64)
        for side in ("left", "bottom"):
            self.getAxis(side).setVisible(axes or bool(len(products)))
        self._draw()

    def _draw(self) -> None:
        values = np.where(np.isfinite(self.products), self.products, 0.0)
        brushes = [pg.mkBrush(self.theme.series[0 if value >= 0 else 1]) for value in values]
        self.bars.setOpts(x=np.arange(len(values)), height=values, width=BAR, brushes=brushes, pen=pg.mkPen(None))
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        room = 0.06 * (high - low) or 1.0
        self.vb.setRange(xRange=(-0.5, max(1, len(values)) - 0.5), yRange=(low - room, high + room), padding=0)


def _around(values: Array) -> tuple[float, float]:
    """From the least to the largest number, with some room."""
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or abs(high) or 1.0
    return low - room, high + room
