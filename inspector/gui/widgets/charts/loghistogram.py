"""A histogram of positive numbers on a logarithmic axis, with one value marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
PER_DECADE = 6


class LogHistogram:
    """Bars of counts over log10; `mark` is a vertical line, named above the bars."""

    def __init__(self, theme: Theme, *, label: str, bottom: str) -> None:
        self.plot = TitledPlot(viewBox=View(), axisItems={"bottom": LogAxis("bottom"), "left": ValueAxis(whole=True)})
        self.bars = pg.BarGraphItem(x=[0], height=[0], width=0.1)
        self.line, self.sample = pg.InfiniteLine(angle=90), pg.PlotDataItem()
        self.legend = Legend(self.plot)
        self.plot.addItem(self.bars)
        self.plot.addItem(self.line, ignoreBounds=True)
        self._labels = (label, bottom)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for axis, label in zip(("left", "bottom"), self._labels, strict=True):
            style_axis(self.plot.getAxis(axis), theme, label)
        self.plot.vb.setBackgroundColor(theme.base)
        self.bars.setOpts(brush=pg.mkBrush(theme.series[0]), pen=pg.mkPen(theme.base))
        for dashed in (self.line, self.sample):
            dashed.setPen(pg.mkPen(theme.cursor, width=1.4, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)

    def show(self, values: Array, mark: float, name: str, title: str) -> None:
        """Count the finite positive values; the title should say how many are not."""
        good = np.log10(values[np.isfinite(values) & (values > 0)].astype(np.float64))
        edge = np.log10(mark) if mark > 0 else 0.0
        low, high = min([edge, *good]), max([edge, *good])
        first, last = np.floor(low * PER_DECADE - 0.5), np.ceil(high * PER_DECADE + 0.5)
        edges = np.arange(first, last + 1) / PER_DECADE
        counts, _ = np.histogram(good, edges)
        self.bars.setOpts(x=(edges[:-1] + edges[1:]) / 2, height=counts, width=0.92 / PER_DECADE)
        self.line.setPos(edge)
        self.legend.clear()
        self.legend.addItem(self.sample, name, self.line)
        self.plot.vb.setXRange(edges[0], edges[-1], padding=0.02)
        self.plot.vb.setYRange(0, max(1, int(counts.max())) * 1.15, padding=0)
        self.plot.title_in(self.theme.text, title)
