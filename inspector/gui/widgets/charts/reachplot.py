"""Two shares by lag in one plot: what the data need, and what of the gradient arrives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
LEAST, VANISHED = -8.0, -3.0
"""log10 of what is drawn at the least, and of a gradient that has vanished."""


class ReachPlot(StepPlot):
    """The gradient as a share of its largest, with its range over sequences, and the information of each lag beyond
    chance as dots with two standard errors, logarithmic."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, theme, label="share", bottom="lag")
        self.setAxisItems({"left": LogAxis()})
        self.getAxis("left").setWidth(58)
        self.gradient, self.low, self.high = (curve(theme, 0, width=width) for width in (1.8, 0.8, 0.8))
        self.needed = pg.ScatterPlotItem(size=8, pen=None)
        self.errors = pg.ErrorBarItem(x=np.zeros(0), y=np.zeros(0), top=np.zeros(0), bottom=np.zeros(0))
        self.border = pg.InfiniteLine(pos=VANISHED, angle=0)
        for one in (self.gradient, self.low, self.high, self.errors, self.needed):
            self.addItem(one)
        self.addItem(self.border, ignoreBounds=True)
        self.names = Legend(self)
        self.names.addItem(self.gradient, "gradient", self.low, self.high)
        self.names.addItem(self.needed, "told by the input, beyond chance", self.errors)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        if not hasattr(self, "names"):
            return  # the base sets its theme before there is anything here
        for line, width in ((self.gradient, 1.8), (self.low, 0.8), (self.high, 0.8)):
            line.setPen(pg.mkPen(theme.series[0], width=width))
        self.needed.setBrush(pg.mkBrush(theme.series[1]))
        self.errors.setOpts(pen=pg.mkPen(theme.series[1], width=1.2))
        self.border.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.names.set_theme(theme)

    def show_rows(self, needed: Array | None, gradient: Array | None) -> None:
        """Draw (share, error, certain) and (mean, least, most), (3, lag) each; hidden without them."""
        self.setVisible(needed is not None and gradient is not None)
        if needed is None or gradient is None:
            return
        lags = np.arange(gradient.shape[1])
        top = np.nanmax(gradient[0][np.isfinite(gradient[0])], initial=0.0) or 1.0
        for line, row in zip((self.gradient, self.low, self.high), gradient, strict=True):
            line.setData(lags, logarithm(np.maximum(row / top, 10**LEAST)))
        at = np.flatnonzero((needed[2] > 0) & (needed[0] > 0))
        share, error = needed[0][at], needed[1][at]
        middle = np.log10(share)
        below = middle - np.log10(np.maximum(share - 2 * error, 10**LEAST))
        self.needed.setData(at, middle)
        self.errors.setData(x=at, y=middle, top=np.log10(share + 2 * error) - middle, bottom=below)
        self.vb.setXRange(-0.5, len(lags) - 0.5, padding=0.01)
        self.vb.setYRange(LEAST, 0.3, padding=0.02)
        self.set_title(
            "gradient before training, and what the data need, by lag", "dashed: a gradient that has vanished"
        )
