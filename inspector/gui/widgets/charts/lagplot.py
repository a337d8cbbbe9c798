"""Curves by lag on a logarithmic axis, each with its band, a legend, and the line 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.centred import about_zero
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
FLOOR = -300.0
MOST_DECADES = 12.0
"""Decades that are shown below and above 1; products beyond have vanished or exploded anyway."""


@dataclass(frozen=True, slots=True)
class LagCurve:
    """One curve: its title, its values by lag, a band around it or None, the number of its colour or None, which
    statistic its values are, "" where there is one value only, and the name of the channel that it is of."""

    title: str
    mean: Array
    low: Array | None = None
    high: Array | None = None
    colour: int | None = None
    statistic: str = ""
    name: str = ""


class LagPlot:
    """Some curves over the lag in steps, from lag 0 on; zero and NaN are gaps."""

    def __init__(self, theme: Theme, *, label: str) -> None:
        self.plot = StepPlot(None, theme, label=label, bottom="lag in steps")
        self.plot.setAxisItems({"left": LogAxis()})
        self.plot.getAxis("left").setWidth(58)
        self.legend = Legend(self.plot)
        self.one = pg.InfiniteLine(0, angle=0)
        self.plot.addItem(self.one, ignoreBounds=True)
        self.marked = pg.PlotDataItem(connect="finite", antialias=True)
        self.marked.hide()
        self.plot.addItem(self.marked, ignoreBounds=True)
        self.items: list[Any] = []
        self.curves: list[LagCurve] = []
        self._centred = False
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        self.one.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.marked.setPen(pg.mkPen(theme.cursor, width=1.4, style=pg.QtCore.Qt.PenStyle.DotLine))
        self.legend.set_theme(theme)
        if self.curves:
            self.show(self.curves, centred=self._centred)

    def show(self, curves: list[LagCurve], *, centred: bool = False) -> None:
        """Draw these curves instead of what was there; `centred` has the line 1 in the middle."""
        self._centred = centred
        for item in self.items:
            self.plot.removeItem(item)
        self.legend.clear()
        self.items, self.curves = [], curves
        for place, one in enumerate(curves):
            number = place if one.colour is None else one.colour
            lag = np.arange(len(one.mean))
            before = len(self.items)
            if one.low is not None and one.high is not None:
                there = one.mean > 0
                self._add_band(lag[there], one.low[there], one.high[there], number)
            band = self.items[before:]
            line = curve(self.theme, number, width=1.8, dashed=number >= len(self.theme.series))
            line.setData(lag, _log(one.mean))
            self._add(line)
            self.legend.addItem(line, f"{one.title} ({one.statistic})" if one.statistic else one.title, *band)
        if self.marked.isVisible():
            self.legend.addItem(self.marked, self.marked.name())
        self._fit()

    def mark(self, values: Array | None, name: str = "") -> None:
        """One more curve in the colour of the cursor, or none."""
        if self.marked.isVisible():
            self.legend.removeItem(self.marked)
        self.marked.setVisible(values is not None)
        if values is not None:
            self.marked.setData(np.arange(len(values)), _log(values), name=name)
            self.legend.addItem(self.marked, name)

    def _add_band(self, lag: Array, low: Array, high: Array, number: int) -> None:
        edges = [curve(self.theme, number, width=0.5) for _ in range(2)]
        colour = self.theme.series[number % len(self.theme.series)]
        both = np.isnan(low) | np.isnan(high)  # where one end is not known there is no band
        for edge, values in zip(edges, (np.where(both, 0, low), np.where(both, 0, high)), strict=True):
            edge.setPen(pg.mkPen(colour + "50", width=0.6))
            edge.setData(lag, np.nan_to_num(_log(values), nan=FLOOR))
            self._add(edge)
        self._add(pg.FillBetweenItem(*edges, brush=pg.mkBrush(colour + "20")))

    def _add(self, item: Any) -> None:
        self.plot.addItem(item)
        self.items.append(item)

    def _fit(self) -> None:
        longest = max((len(one.mean) for one in self.curves), default=1)
        self.plot.vb.setXRange(0, max(1, longest - 1), padding=0)
        values = np.concatenate([_log(one.mean) for one in self.curves]) if self.curves else np.zeros(0)
        values = values[np.isfinite(values)]
        top = min(MOST_DECADES, max(0.0, float(values.max()))) if len(values) else 0.0
        bottom = max(-MOST_DECADES, float(values.min())) if len(values) else -1.0
        if self._centred:
            bottom, top = about_zero(min(bottom, -0.3), top)
        margin = 0.06 * (top - bottom) or 0.5
        self.plot.vb.setYRange(min(bottom, -0.3) - margin, top + margin, padding=0)


def _log(values: Array) -> Array:
    return np.clip(logarithm(np.asarray(values, dtype=np.float64)), FLOOR, -FLOOR)
