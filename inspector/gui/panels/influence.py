"""Influence: natural or vanished? The influence of inputs on the loss by lag, beside the gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.influence import INFLUENTIAL, VANISHED, Past, influence_verdict
from inspector.gui.panel.base import Panel, measured, number
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import rows_of, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.wrapped_text import WrappedText
from inspector.records import Channel

Array = npt.NDArray[Any]
LEVELS = ((INFLUENTIAL, "influence counts above 5 %"), (VANISHED, "gradient has vanished below 10⁻³"))
DEEPEST, FEW = -9.0, 80
ORDER = ("influence/loss", "gradient/lag", "influence/divergence")


@PANELS.register("influence")
class Influence(Panel):
    """(statistic, lag) channels of kind "influence", each as a share of its own value at the reference lag."""

    tab_order = 150
    menu_group = "gradients"
    key, title = "influence", "Influence"
    hint = (
        "Natural or vanished? Inputs are replaced and the change of each later loss is plotted by lag, beside the "
        "gradient. Inputs that a model has not learned to use show no influence."
    )

    extra = ("influence",)
    needs_height = 260

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Curves by lag with their error."""
        return channel.kind == "influence" and channel.dims == ("statistic", "lag")

    def concerns(self, name: str) -> bool:
        """Curves that could not be computed."""
        return name.startswith(("input:influence", "input:gradient"))

    def build(self) -> None:
        """One plot, and a line with the method."""
        self.plot = StepPlot(None, self.theme, label="share of the reference lag", bottom="lag in steps")
        self.plot.setAxisItems({"left": LogAxis()})
        self.plot.getAxis("left").setWidth(58)
        self.legend = Legend(self.plot)
        self.low, self.high = curve(self.theme, 0, width=0.4), curve(self.theme, 0, width=0.4)
        self.band = pg.FillBetweenItem(self.low, self.high)
        self.marks = [pg.InfiniteLine(math.log10(share), angle=0) for share, _ in LEVELS]
        self.samples = [pg.PlotDataItem() for _ in LEVELS]
        for item in (self.band, self.low, self.high):
            self.plot.addItem(item)
        for mark in self.marks:
            self.plot.addItem(mark, ignoreBounds=True)
        self.lines: dict[str, pg.PlotDataItem] = {}
        self.verdict, self.method = WrappedText(self.theme), WrappedText(self.theme, lines=3, points=8, muted=True)
        for row, item in enumerate((self.verdict, self.plot, self.method)):
            self.figure.addItem(item, row=row, col=0)
        self.plots = [self.plot]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        styles = (pg.QtCore.Qt.PenStyle.DashLine, pg.QtCore.Qt.PenStyle.DotLine)
        for line, sample, style in zip(self.marks, self.samples, styles, strict=True):
            line.setPen(pg.mkPen(theme.muted, width=1, style=style))
            sample.setPen(pg.mkPen(theme.muted, width=1.4, style=style))
        for edge in (self.low, self.high):
            edge.setPen(pg.mkPen(theme.series[0] + "60", width=0.4))
        self.band.setBrush(pg.mkBrush(theme.series[0] + "38"))
        self.verdict.theme = self.method.theme = theme
        self.legend.set_theme(theme)
        for index, line in enumerate(self.lines.values()):
            line.setPen(pg.mkPen(theme.series[index % len(theme.series)], width=1.8))
            line.setSymbolBrush(theme.series[index % len(theme.series)])
        super().set_theme(theme)

    def channels(self) -> list[Channel]:
        """The curves, in the order in which they are drawn."""
        found = super().channels()
        return sorted(found, key=lambda c: ORDER.index(c.signal) if c.signal in ORDER else len(ORDER))

    def scalar(self, name: str) -> float:
        """A number of the frame shown; NaN where there is none."""
        assert self.capture is not None
        return scalar_of(self.capture, name, self.channels()[0].name, self.frame)

    def means(self) -> dict[str, Array]:
        """Mean and standard error (2, lag) of every channel, by signal."""
        assert self.capture is not None
        return {
            channel.signal: np.stack(rows_of(channel, self.capture.array(channel.name, self.frame), "mean", "error"))
            for channel in self.channels()
        }

    def update_contents(self) -> None:
        """Every curve relative to its reference lag, and the verdict."""
        found, channels = self.means(), self.channels()
        zero = self.scalar("input:influence/reference_lag")
        zero = int(zero) if math.isfinite(zero) else 0
        if list(self.lines) != [channel.name for channel in channels]:
            self._remake(channels)
        low, high = [0.0], [0.3]
        for channel in channels:
            shares = relative(found[channel.signal][0], zero)
            lag, values = seen(shares)
            few = len(lag) <= FEW
            self.lines[channel.name].setData(lag, values, symbol="o" if few else None)
            low.append(float(values.min()) if len(values) else 0.0)
            high.append(float(values.max()) if len(values) else 0.0)
        self._draw_band(found[channels[0].signal], zero)
        self.plot.vb.setYRange(max(min(low), DEEPEST) - 0.2, max(high) + 0.1, padding=0)
        self.plot.vb.setXRange(0, max(1, found[channels[0].signal].shape[1] - 1), padding=0.01)
        self.plot.setLabel("left", f"share of the value at lag {zero}")
        self.verdict.set_text(self.sentence(found, zero))
        methods = [
            f"{channel.title}: {channel.method}" for channel in channels if channel.signal != "influence/divergence"
        ]
        self.method.set_text("\n".join(methods))

    def sentence(self, found: dict[str, Array], zero: int) -> str:
        """The verdict, where the influence on the loss was measured."""
        if "influence/loss" not in found:
            return "influence on the outputs; without a loss there is no gradient to compare with"
        flowing = found.get("gradient/lag")
        reaches = (self.scalar("input:influence/reach"), self.scalar("input:gradient/reach"))
        curve_of = None if flowing is None else flowing[0]
        past = Past.read(self.scalar)
        return influence_verdict(found["influence/loss"][0], curve_of, zero, reaches, past).sentence

    def _draw_band(self, statistics: Array, zero: int) -> None:
        """One standard error to each side of the first curve."""
        size = statistics[0, zero] if statistics[0, zero] > 0 else 1.0
        lag = np.flatnonzero(np.isfinite(statistics[1]) & (statistics[0] > 0))
        mean, error = statistics[0, lag] / size, statistics[1, lag] / size
        for edge, values in ((self.low, mean - error), (self.high, mean + error)):
            edge.setData(lag, np.maximum(np.log10(np.maximum(values, 10.0**DEEPEST)), DEEPEST - 1))

    def _remake(self, channels: list[Channel]) -> None:
        for line in self.lines.values():
            self.plot.removeItem(line)
        self.legend.clear()
        self.lines = {}
        for index, channel in enumerate(channels):
            line = curve(self.theme, index, width=1.8)
            line.setSymbolSize(5)
            line.setSymbolPen(None)
            line.setSymbolBrush(self.theme.series[index % len(self.theme.series)])
            self.plot.addItem(line)
            self.legend.addItem(line, channel.title, *(() if index else (self.low, self.high, self.band)))
            self.lines[channel.name] = line
        for sample, mark, (_, name) in zip(self.samples, self.marks, LEVELS, strict=True):
            self.legend.addItem(sample, name, mark)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """A lag is marked."""
        self.marked.set(self.plot, max(0, round(x)))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every curve at the lag that is marked, and how far both reach."""
        rows = []
        for channel in self.channels():
            assert self.capture is not None
            lag = self.marked.at(self.plot, self.capture.extent(channel.name, self.frame)[1])
            if lag is not None:
                column = exact(self.capture, channel.name, self.frame, (slice(None), slice(lag, lag + 1)))[:, 0]
                cells: list[Any] = list(rows_of(channel, column, "mean", "error"))
                mean, error = cells
                known = not isinstance(error, str) and math.isfinite(error)
                first, last = (f"{number(mean)} ± ", error) if known else ("", mean)
                rows.append((f"{channel.title} [lag {lag}]", f"{first}{measured(last, channel.unit)}"))
        for what, name in (("influence on the loss ≥ 5 %", "influence"), ("gradient ≥ 10⁻³", "gradient")):
            value = self.scalar(f"input:{name}/reach")
            rows.append((f"{what} up to lag", number(value) if math.isfinite(value) else "none"))
        past = Past.read(self.scalar)
        if past.left_out > 0:
            rows.append(("losses with a past that are not finite", number(past.left_out)))
        if math.isfinite(past.p):
            rows.append(("loss with the past / without", f"{number(past.with_past)} / {number(past.without)}"))
            rows.append(("p of the past being of no use", number(past.p)))
        return rows

    def data(self) -> dict[str, Array]:
        """All curves with their errors."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}


def relative(mean: Array, reference: int) -> Array:
    """A curve in units of its value at the reference lag; unchanged where that is 0."""
    size = float(mean[reference]) if reference < len(mean) else math.nan
    return mean / size if size > 0 and math.isfinite(size) else mean


def seen(shares: Array) -> tuple[Array, Array]:
    """(lags, log10) of the points that can be drawn: lags that no pair of steps has are left out."""
    values = logarithm(shares)
    lag = np.flatnonzero(np.isfinite(values))
    return lag, values[lag]
