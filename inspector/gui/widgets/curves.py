"""A family of curves over steps on one axis, with a legend and the line 1 marked."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg

from inspector.capture import Capture
from inspector.gui.steprange import StepRange
from inspector.gui.theme import Theme
from inspector.gui.widgets.axes import LogAxis
from inspector.gui.widgets.legend import Legend
from inspector.gui.widgets.source import line_of
from inspector.gui.widgets.stepplot import StepPlot, curve, logarithm, lone
from inspector.records import Channel


class Curves:
    """Lines of (step,) channels in one plot; redrawn for what is in view."""

    def __init__(self, steps: StepRange, theme: Theme, *, label: str, log: bool, one: bool = False) -> None:
        self.plot = StepPlot(steps, theme, label=label)
        self.log = log
        if log:
            self.plot.setAxisItems({"left": LogAxis()})
            self.plot.getAxis("left").setWidth(58)
        self.legend = Legend(self.plot)
        self.lines: dict[str, pg.PlotDataItem] = {}
        self.one = pg.InfiniteLine(0 if log else 1, angle=0)
        if one:
            self.plot.addItem(self.one, ignoreBounds=True)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        self.one.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)
        for number, line in enumerate(self.lines.values()):
            line.setPen(pg.mkPen(theme.series[number % len(theme.series)], width=1.4))

    def show(self, capture: Capture, channels: list[Channel], frame: int, bounds: tuple[float, float]) -> None:
        """Draw these channels over the steps in view."""
        names = [channel.name for channel in channels]
        if names != list(self.lines):
            self._remake(channels)
        low, high = [], []
        for channel in channels:
            x, y = line_of(capture, channel.name, frame, bounds)
            y = logarithm(y) if self.log else y.astype(np.float64)
            self.lines[channel.name].setData(x, y, **lone(y))
            finite = y[np.isfinite(y)]
            if len(finite):
                low.append(float(finite.min()))
                high.append(float(finite.max()))
        self._fit(low, high)

    def _fit(self, low: list[float], high: list[float]) -> None:
        if not low:
            return
        bottom, top = min(low), max(high)
        if self.log and self.one.scene() is not None:
            bottom, top = min(bottom, 0.0), max(top, 0.0)
        margin = 0.06 * (top - bottom) or 0.5
        self.plot.vb.setYRange(bottom - margin, top + margin, padding=0)

    def _remake(self, channels: list[Channel]) -> None:
        for line in self.lines.values():
            self.plot.removeItem(line)
        self.legend.clear()
        several = len({channel.place for channel in channels}) > 1
        self.lines = {}
        for number, channel in enumerate(channels):
            line = curve(self.theme, number, dashed=number >= len(self.theme.series))
            self.plot.addItem(line)
            self.legend.addItem(line, f"{channel.title}  {channel.place}" if several else channel.title)
            self.lines[channel.name] = line
