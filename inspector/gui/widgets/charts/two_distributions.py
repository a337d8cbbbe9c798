"""The distributions of one channel in two runs over each other: outlines of histograms with common bins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme

Floats = npt.NDArray[np.float64]
FILLED = 60
"""Of 255, the opacity of the area below an outline."""


class TwoDistributions:
    """A plot with two outlines and a legend."""

    def __init__(self, theme: Theme) -> None:
        self.log = False
        axes = {side: ValueAxis(side) for side in ("left", "bottom")}
        self.plot = TitledPlot(viewBox=View(), axisItems=axes)
        self.outlines = [pg.PlotDataItem(stepMode="center", fillLevel=0) for _ in range(2)]
        for outline in self.outlines:
            self.plot.addItem(outline)
        self.legend = Legend(self.plot, theme=theme)
        self._label, self._title = "", ""
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        style_axis(self.plot.getAxis("left"), theme, "share of numbers")
        style_axis(self.plot.getAxis("bottom"), theme, self._label)
        self.plot.vb.setBackgroundColor(theme.base)
        self.legend.set_theme(theme)
        for outline, colour in zip(self.outlines, theme.series, strict=False):
            fill = pg.mkColor(colour)
            fill.setAlpha(FILLED)
            outline.setPen(pg.mkPen(colour, width=1.6))
            outline.setBrush(pg.mkBrush(fill))
        self.plot.title_in(theme.text, self._title)

    def show(
        self, edges: Floats, shares: tuple[Floats, Floats], names: tuple[str, str], label: str, *, log: bool
    ) -> None:
        """Draw both: `edges` (k + 1,) of the bins and the share (k,) of each side in each; `label`: of the values."""
        if log is not self.log:
            self.log = log
            self.plot.setAxisItems({"bottom": LogAxis("bottom") if log else ValueAxis("bottom")})
        self._label = label
        places = np.log10(edges) if log else edges
        for outline, share in zip(self.outlines, shares, strict=True):
            outline.setData(places, share)
        self.plot.vb.setXRange(places[0], places[-1], padding=0.02)
        self.plot.vb.setYRange(0.0, max(float(share.max()) for share in shares) * 1.05, padding=0)
        self.legend.clear()
        for outline, name in zip(self.outlines, names, strict=True):
            self.legend.addItem(outline, name)
        self.set_theme(self.theme)
