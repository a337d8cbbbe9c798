"""Lines over the steps, each with a filled band around it: a mean with what it may be off by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.charts.bands import bands, crowded
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, isolated
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
OPACITY = "38"
"""Of a band, in hexadecimal: three of them above each other are still told apart."""

LEFT_OUT = 0.02
"""Share of the ends of bands that may be beyond the axis."""


@dataclass(frozen=True, slots=True)
class Filled:
    """One line: its name in the legend, its numbers from step `first` on, the half width of its band or None."""

    name: str
    values: Array
    half: Array | None = None
    first: int = 0
    dots: bool = False
    """Drawn as points: samples."""


class FilledLines:
    """Up to `most` of them in a plot."""

    def __init__(self, plot: StepPlot, theme: Theme, most: int) -> None:
        self.plot, self.theme = plot, theme
        self.lines = [curve(theme, n) for n in range(most)]
        self.dots = [pg.ScatterPlotItem(size=4, pen=None) for _ in range(most)]
        self.edges = [tuple(pg.PlotCurveItem(connect="finite", pen=None) for _ in "ab") for _ in range(most)]
        self.fills = [pg.FillBetweenItem(low, high) for low, high in self.edges]
        for n in range(most):
            for item in (self.fills[n], *self.edges[n], self.lines[n], self.dots[n]):
                plot.addItem(item)
        self.legend = Legend(plot)
        self.dense = False
        """Whether means and extremes are drawn."""
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.legend.set_theme(theme)
        for n, line in enumerate(self.lines):
            colour = theme.series[n % len(theme.series)]
            line.setPen(pg.mkPen(colour, width=1.4))
            self.dots[n].setBrush(pg.mkBrush(colour))
            self.fills[n].setBrush(pg.mkBrush(colour + OPACITY))

    def show(self, filled: Sequence[Filled], pixels: float) -> None:
        """Draw these in a plot so wide. Where more than two steps share a pixel, a part of several steps has their mean
        and their widest band, and what has no band, its extremes."""
        self.legend.clear()
        self.dense = crowded(max((len(one.values) for one in filled), default=0), pixels)
        low: list[Array] = []
        high: list[Array] = []
        within: list[Array] = []
        for n, line in enumerate(self.lines):
            one = filled[n] if n < len(filled) else Filled("", np.zeros(0))
            x, under, middle, over = self._parts(one, int(pixels / 2) if self.dense else len(one.values))
            self._draw(n, one, x, under, middle, over)
            if n < len(filled):
                self.legend.addItem(line, one.name, self.dots[n])
                known = np.isfinite(under) & np.isfinite(over)
                wide = over[known] - under[known]
                low.append(under[known])
                high.append(over[known])
                within.append(middle[known][wide <= np.quantile(wide, 1 - LEFT_OUT)] if len(wide) else wide)
        self._fit(*(np.concatenate([*kept, np.zeros(0)]) for kept in (low, high, within)))

    def _draw(self, n: int, one: Filled, x: Array, under: Array, middle: Array, over: Array) -> None:
        dots, banded = one.dots and not self.dense, one.half is not None or self.dense
        self.lines[n].setData(*(([], []) if dots else (x, middle)))
        alone = np.isfinite(middle) if dots else isolated(x, middle)
        self.dots[n].setData(x=x[alone], y=middle[alone])
        for edge, side in zip(self.edges[n], (under, over), strict=True):
            edge.setData(*((x, side) if banded else (np.zeros(0), np.zeros(0))))
        self.fills[n].setVisible(banded and len(x) > 1)

    @staticmethod
    def _parts(one: Filled, cells: int) -> tuple[Array, Array, Array, Array]:
        """x, lower end, mean and upper end of each part."""
        x, under, middle, over = bands(one.values, one.first, cells)
        if one.half is not None:
            with np.errstate(invalid="ignore"):  # ∞ − ∞
                low, high = one.values - one.half, one.values + one.half
            under, over = bands(low, one.first, cells)[1], bands(high, one.first, cells)[3]
        return x, under, middle, over

    def _fit(self, low: Array, high: Array, middle: Array) -> None:
        """Nearly all of the bands, and lines where these are not the widest: a filter begins with knowing nothing."""
        if not len(middle) or not len(low) or not len(high):
            return
        bottom = min(float(np.quantile(low, LEFT_OUT)), float(middle.min()))
        top = max(float(np.quantile(high, 1 - LEFT_OUT)), float(middle.max()))
        margin = 0.06 * (top - bottom) or 0.5 * abs(top) or 0.5
        self.plot.vb.setYRange(bottom - margin, top + margin, padding=0)
