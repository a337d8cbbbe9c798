"""How many have which value: bars over the values, with the mean, and marks at single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
MOST_BARS = 40
WIDE = 20.0
"""Positive values that span more than this factor have a logarithmic axis."""


class Distribution:
    """Bars; a dashed line at the mean, a line at the chosen value, and triangles at marked ones."""

    def __init__(self, theme: Theme) -> None:
        self.log = False
        self.plot = TitledPlot(viewBox=View(), axisItems={"left": ValueAxis(whole=True)})
        self.bars = pg.BarGraphItem(x=[0], height=[0], width=0.1)
        self.mean, self.chosen = pg.InfiniteLine(angle=90), pg.InfiniteLine(angle=90)
        self.marks = pg.ScatterPlotItem(symbol="t", size=10, pen=None)
        self.plot.addItem(self.bars)
        for item in (self.mean, self.chosen, self.marks):
            self.plot.addItem(item, ignoreBounds=True)
        self._label = ""
        self._axis(log=False)
        self.set_theme(theme)

    def _axis(self, *, log: bool) -> None:
        self.log = log
        self.plot.setAxisItems({"bottom": LogAxis("bottom") if log else ValueAxis("bottom")})

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        style_axis(self.plot.getAxis("left"), theme, "sequences")
        style_axis(self.plot.getAxis("bottom"), theme, self._label)
        self.plot.vb.setBackgroundColor(theme.base)
        self.bars.setOpts(brush=pg.mkBrush(theme.series[0]), pen=pg.mkPen(theme.base))
        self.mean.setPen(pg.mkPen(theme.muted, width=1.4, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.chosen.setPen(pg.mkPen(theme.cursor, width=1.6))
        self.marks.setBrush(pg.mkBrush(theme.error))

    def show(self, values: Array, marked: Array, label: str, title: str) -> None:
        """Draw the finite values (n,); `marked` are those of single ones."""
        there = values[np.isfinite(values)].astype(np.float64)
        log = bool(len(there) and there.min() > 0 and there.max() > WIDE * there.min())
        if log is not self.log:
            self._axis(log=log)
        self._label = label
        style_axis(self.plot.getAxis("bottom"), self.theme, label)
        x = self.placed(there)
        edges = bin_edges(x)
        counts = np.histogram(x, edges)[0] if len(x) else np.zeros(len(edges) - 1)
        self.bars.setOpts(x=(edges[:-1] + edges[1:]) / 2, height=counts, width=0.94 * (edges[1] - edges[0]))
        self.mean.setVisible(len(x) > 1)
        self.mean.setPos(float(self.placed(np.array([there.mean()]))[0]) if len(x) else 0.0)
        top = max(1.0, float(counts.max(initial=0))) * 1.15
        at = self.placed(marked[np.isfinite(marked)])
        self.marks.setData(x=at, y=np.full(len(at), 0.94 * top))
        self.plot.vb.setXRange(float(edges[0]), float(edges[-1]), padding=0.02)
        self.plot.vb.setYRange(0, top, padding=0)
        self.plot.title_in(self.theme.text, title)

    def placed(self, values: Array) -> Array:
        """Where values lie along the axis."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Array = np.log10(values) if self.log else values
        return found

    def choose(self, value: float | None) -> None:
        """The line at one value; None: no line."""
        at = float("nan") if value is None else float(self.placed(np.array([value]))[0])
        self.chosen.setVisible(bool(np.isfinite(at)))
        if np.isfinite(at):
            self.chosen.setPos(at)


def bin_edges(values: Array) -> Array:
    """Edges of bars of equal width, by Freedman and Diaconis' rule, within bounds; one bar for equal values."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    if not high > low:
        half = 0.5 * max(1.0, abs(low)) * 0.1
        return np.array([low - 3 * half, low - half, low + half, low + 3 * half])
    spread = float(np.subtract(*np.percentile(values, [75, 25])))
    width = 2 * spread / len(values) ** (1 / 3)
    count = int(np.clip((high - low) / width if width > 0 else 10, 5, MOST_BARS))
    return np.linspace(low, high, count + 1)
