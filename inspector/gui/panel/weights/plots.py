"""The plot beside the map of a tensor: several curves or histograms with a legend, or values over their index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, logarithm
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
FILLED = 50
"""Of 255, the opacity below a histogram."""
MOST_POINTS, MARKED = 4_000, 256
"""Points of a line before it is thinned to extremes; values up to which each has a mark."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One line: y (n,) over x (n,), or over the edges x (n + 1,) of a histogram."""

    name: str
    x: Array
    y: Array

    @property
    def bars(self) -> bool:
        """Whether it is a histogram."""
        return len(self.x) == len(self.y) + 1


class LinesPlot(StepPlot):
    """As many lines as are shown; with `log` their logarithms, and what is not above 0 is left out."""

    def __init__(self, theme: Theme, *, log: bool = False) -> None:
        self.lines: list[pg.PlotDataItem] = []
        self.log = log
        super().__init__(None, theme)
        before = [self.getAxis("bottom"), *([self.getAxis("left")] if log else [])]
        self.setAxisItems({"bottom": ValueAxis("bottom"), **({"left": LogAxis()} if log else {})})
        for axis in before:
            axis.setParentItem(None)  # pyqtgraph leaves it in a plot that is in no scene yet
        self._bottom = self.getAxis("bottom")
        self.getAxis("left").setWidth(58)
        self.getAxis("left").enableAutoSIPrefix(False)
        self.legend_of = Legend(self, theme=theme)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        for number, line in enumerate(self.lines):
            self._paint(line, number)
        if hasattr(self, "legend_of"):
            self.legend_of.set_theme(theme)

    def _paint(self, line: pg.PlotDataItem, number: int) -> None:
        colour = self.theme.series[number % len(self.theme.series)]
        fill = pg.mkColor(colour)
        fill.setAlpha(FILLED)
        line.setPen(pg.mkPen(colour, width=1.4))
        line.setBrush(pg.mkBrush(fill))
        line.setSymbolBrush(pg.mkBrush(colour))
        line.setSymbolPen(None)

    def show_lines(self, drawn: Sequence[Drawn], left: str, bottom: str) -> None:
        """Show other lines, with what the axes count."""
        self.label_left(left)
        self.label_bottom(bottom)
        for line in self.lines:
            self.removeItem(line)
        self.legend_of.clear()
        self.lines = []
        for number, one in enumerate(drawn):
            line = self._made(one)
            self._paint(line, number)
            self.lines.append(line)
            self.addItem(line)
            if len(drawn) > 1:
                self.legend_of.addItem(line, one.name)
        self.vb.enableAutoRange()
        self.vb.setDefaultPadding(0.04)

    def _made(self, one: Drawn) -> pg.PlotDataItem:
        if one.bars:
            return pg.PlotDataItem(one.x, one.y, stepMode="center", fillLevel=0)
        y = logarithm(one.y) if self.log else np.where(np.isfinite(one.y), one.y, np.nan)
        few = {"symbol": "o", "symbolSize": 4} if len(y) <= MARKED else {}
        line = pg.PlotDataItem(one.x, y.astype(np.float64), connect="finite", **few)
        if len(y) > MOST_POINTS:
            line.setDownsampling(auto=True, method="peak")
            line.setClipToView(True)
        return line


def histogram(name: str, counts: Array, low: float, high: float, *, density: bool) -> Drawn | None:
    """Bars of counts (k,) between two ends, or of their density; None where there is nothing to count. Equal values
    have one bar, a little wide."""
    total = float(counts.sum())
    if not total or not np.isfinite((low, high)).all():
        return None
    if not high > low:
        half = 0.05 * max(abs(low), 1e-30)
        counts, low, high = counts[:1], low - half, high + half
    edges = np.linspace(low, high, len(counts) + 1)
    heights = counts / total / (edges[1] - edges[0]) if density else counts.astype(np.float64)
    return Drawn(name, edges, heights)
