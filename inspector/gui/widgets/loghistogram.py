"""A histogram of positive numbers on a logarithmic axis, with one value marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.text import escaped
from inspector.gui.theme import Theme
from inspector.gui.widgets.axes import LogAxis, style_axis
from inspector.gui.widgets.stepplot import title_from_left

Array = npt.NDArray[Any]
PER_DECADE = 6


class LogHistogram:
    """Bars of counts over log10; `mark` is a vertical line with a name."""

    def __init__(self, theme: Theme, *, label: str, bottom: str) -> None:
        self.plot = pg.PlotItem(axisItems={"bottom": LogAxis("bottom")}, enableMenu=False)
        title_from_left(self.plot)
        self.plot.hideButtons()
        self.plot.vb.setMouseEnabled(x=False, y=False)
        self.plot.getAxis("left").enableAutoSIPrefix(False)
        self.bars = pg.BarGraphItem(x=[0], height=[0], width=0.1)
        self.line = pg.InfiniteLine(angle=90, label="", labelOpts={"position": 0.92, "anchors": [(0, 0.5), (1, 0.5)]})
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
        self.line.setPen(pg.mkPen(theme.cursor, width=1.4, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.line.label.setColor(theme.cursor)

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
        self.line.label.setPlainText(name)
        self.plot.vb.setXRange(edges[0], edges[-1], padding=0.02)
        self.plot.vb.setYRange(0, max(1, int(counts.max())) * 1.15, padding=0)
        self.plot.setTitle(escaped(title), color=self.theme.text, size="9pt")
