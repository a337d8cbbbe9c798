"""Several series in one plot over the steps: lines, or mean and extremes where more than two steps share a pixel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QTimer

from inspector.gui.widgets.charts.band_of_curve import BELOW
from inspector.gui.widgets.charts.bands import bands, crowded
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
Series = tuple[str, Array]
"""(name in the legend, (steps,) numbers)."""
CROWD = ", mean and extremes of the steps of two pixels"


class BandedLines:
    """Up to `most` lines of a plot, with thin ones of the extremes around each; a legend where there are several.

    `again` draws them once more, with what is said of them: a plot has its width only after it was drawn first.
    """

    def __init__(self, plot: StepPlot, theme: Theme, most: int, again: Callable[[], object]) -> None:
        self.plot, self._again = plot, again
        self._bounds, self._pixels = (0.0, 0.0), 0.0
        self._soon = QTimer(plot, interval=0, singleShot=True)
        self._soon.timeout.connect(self._draw_again)
        plot.vb.sigResized.connect(lambda _: self._soon.start())
        self.theme, self.most = theme, most
        self.lines: list[pg.PlotDataItem] = []
        self.edges: list[tuple[pg.PlotDataItem, pg.PlotDataItem]] = []
        """Made when they are needed, but for the first: a curve takes a millisecond, and a panel has many."""
        self._need(1)
        self.legend = Legend(plot)
        self.series: Sequence[Series] = ()
        self.dense = False
        """Whether means and extremes are drawn."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.legend.set_theme(theme)
        for n in range(len(self.lines)):
            self._colour(n)

    def _colour(self, n: int) -> None:
        colour = self.theme.series[n % len(self.theme.series)]
        self.lines[n].setPen(pg.mkPen(colour, width=1.4))
        for edge in self.edges[n]:
            edge.setPen(pg.mkPen(colour + "70", width=0.6))

    def _need(self, count: int) -> None:
        for n in range(len(self.lines), count):
            edges = curve(self.theme, n, width=0.6), curve(self.theme, n, width=0.6)
            for edge in edges:
                edge.setZValue(BELOW)
            self.lines.append(curve(self.theme, n))
            self.edges.append(edges)
            for one in (*edges, self.lines[n]):
                self.plot.addItem(one)
            self._colour(n)

    def show(self, series: Sequence[Series], bounds: tuple[float, float]) -> None:
        """Draw the part of these series that is in view, from the first step within `bounds` to the last."""
        self.series = series[: self.most]
        self._need(len(self.series))
        low, high = self._bounds = bounds
        pixels = self._pixels = self.plot.vb.width()
        self.dense = self._crowded(pixels)
        self.legend.clear()
        for n, line in enumerate(self.lines):
            if n >= len(self.series):
                for one in (line, *self.edges[n]):
                    one.setData([], [])
                continue
            name, values = self.series[n]
            self._draw(n, values, max(0, int(low)), int(high) + 2, int(pixels / 2))
            if len(self.series) > 1:
                self.legend.addItem(line, name, *self.edges[n])

    def _crowded(self, pixels: float) -> bool:
        longest = max((len(values) for _, values in self.series), default=0)
        return crowded(min(self._bounds[1] - self._bounds[0], longest), pixels)

    def _draw_again(self) -> None:
        """Where what was drawn would look otherwise at the width that the plot has now."""
        pixels = self.plot.vb.width()
        if pixels != self._pixels and self.series and (self.dense or self._crowded(pixels)):
            self._again()

    def _draw(self, n: int, values: Array, first: int, end: int, cells: int) -> None:
        stop = min(len(values), end)
        cells = max(1, cells) if self.dense else max(1, stop - first)
        x, least, mean, largest = bands(values[first:stop], first, cells)
        self.lines[n].setData(x, mean)
        for edge, extreme in zip(self.edges[n], (least, largest), strict=True):
            edge.setData(*((x, extreme) if self.dense else ([], [])))
