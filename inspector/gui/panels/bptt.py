"""BPTT: the contribution of every step's loss to the gradient of every step's use of a parameter, its sum by lag, and
the check on the sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.itemised_gradient import immediate_part, sum_verdict
from inspector.gui.panel.base import Panel, measured, number, set_options
from inspector.gui.panel.exact import exact, exact_at
from inspector.gui.panel.labelled import rows_of, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images import quantise
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import of_the_other
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
MAP, LAG = ("step", "source"), ("statistic", "lag")
FIRST = "weight_hh"
DECADES = 8.0
"""Decades that are shown of a map below its largest entry: smaller entries would not be visible beside the rest."""
NAMES, ERROR = ("norm of the sum", "sum of the norms"), "standard error"
HALF = 300
"""Pixels that map and sums ask for, each: as much of one as of the other."""


@PANELS.register("bptt")
class Bptt(Panel):
    """(step, source) maps of kind "bptt" of one place and parameter, with their (statistic, lag) sums below."""

    tab_order = 120
    menu_group = "gradients"
    key, title = "bptt", "BPTT"
    of_recurrences = True
    hint = (
        "Backpropagation through time, itemised: what each step's loss contributes to each step's use of a parameter. "
        "Needs a recurrent layer and a loss."
    )

    extra = ("bptt",)
    needs_height = 240

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Maps over loss step and source step, and their sums by lag."""
        return channel.kind == "bptt" and channel.dims in (MAP, LAG)

    def concerns(self, name: str) -> bool:
        """Items that could not be computed."""
        return ":bptt" in name

    def build(self) -> None:
        """The map beside the sums."""
        self.where = self.add_choice("Layer", "Place in the model")
        self.which = self.add_choice("Parameter", "Parameter")
        cell, words = self.figure.addLayout(row=0, col=0), ("step of the loss", "step of the use (source)")
        self.row = MapRow(cell, 0, None, self.theme, label=words[0], bottom=words[1], square=True)
        self.row.map.setFlag(self.row.map.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.loss_axis = StepAxis("left")
        self.row.plot.setAxisItems({"left": self.loss_axis})
        self.loss_axis.setWidth(58)
        self.plot = StepPlot(None, self.theme, label="gradient norm", bottom="lag in steps")
        self.plot.setAxisItems({"left": LogAxis()})
        self.plot.getAxis("left").setWidth(58)
        self.lines = [curve(self.theme, number, width=1.8) for number in range(2)]
        self.edges = [curve(self.theme, 0, width=0.6) for _ in range(2)]
        self.band = pg.FillBetweenItem(*self.edges)
        for item in (self.band, *self.edges, *self.lines):
            self.plot.addItem(item)
        self.legend = Legend(self.plot)
        for line, name, also in zip(self.lines, NAMES, ((self.band, *self.edges), ()), strict=True):
            self.legend.addItem(line, name, *also)
        self.figure.addItem(self.plot, row=0, col=1)
        for column in (0, 1):
            self.figure.ci.layout.setColumnStretchFactor(column, 1)
            self.figure.ci.layout.setColumnPreferredWidth(column, HALF)
        self.plots = [self.row.plot, self.plot]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        style_axis(self.loss_axis, theme, "step of the loss")
        style_axis(self.plot.getAxis("left"), theme, "gradient norm")
        for number_, line in enumerate(self.lines):
            line.setPen(pg.mkPen(theme.series[number_], width=1.8))
        for edge in self.edges:
            edge.setPen(pg.mkPen(theme.series[0] + "60", width=0.6))
        self.band.setBrush(pg.mkBrush(theme.series[0] + "38"))
        self.legend.set_theme(theme)
        super().set_theme(theme)

    def shown(self, dims: tuple[str, ...]) -> Channel | None:
        """The map or the sums of the chosen place and parameter."""
        name = f"{self.where.currentText()}:bptt/{self.which.currentText()}"
        return next((c for c in self.channels() if c.dims == dims and c.name in (name, f"{name}/lag")), None)

    def update_contents(self) -> None:
        """Map and sums of the chosen place and parameter."""
        channels = self.channels()
        set_options(self.where, list(dict.fromkeys(channel.place for channel in channels)))
        here = [c for c in channels if c.place == self.where.currentText()]
        names = [c.signal.removeprefix("bptt/").removesuffix("/lag") for c in here]
        set_options(self.which, sorted(dict.fromkeys(names), key=lambda name: name != FIRST))
        self._draw_map(self.shown(MAP))
        self._draw_sums(self.shown(LAG))

    def scalar(self, signal: str) -> float:
        """A number of the chosen place and parameter; NaN where there is none."""
        channel = self.shown(MAP) or self.shown(LAG)
        if channel is None or self.capture is None:
            return math.nan
        wanted = f"{channel.name.removesuffix('/lag')}/{signal}"
        return scalar_of(self.capture, wanted, channel.name, self.frame)

    def sentence(self) -> str:
        """The sum of the map, as text."""
        return sum_verdict(self.scalar("check_error")).sentence

    def _draw_map(self, channel: Channel | None) -> None:
        for item in (self.row.plot, self.row.bar):
            item.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = self.capture.array(channel.name, self.frame)
        past = np.tril(np.ones(values.shape, dtype=bool))
        if channel.place.endswith(".reverse"):
            past = past.T  # a backward direction uses a parameter at steps after the loss
        shown = np.where(past, values, -np.inf)
        gaps = gaps_of(self.capture, channel.name, self.frame, x=1, y=0)
        both = np.concatenate((values[past], of_the_other(self.capture, channel)))
        self.row.show_array(shown.T, floored(both, channel), channel.unit, gaps=gaps)
        self.row.plot.set_title(f"{channel.place}, {self.which.currentText()}", self.sentence())
        names = self.step_names()
        for axis, count in zip((self.loss_axis, self.row.plot.step_axis), values.shape, strict=True):
            axis.set_names(names if len(names) == count else ())

    def _draw_sums(self, channel: Channel | None) -> None:
        self.plot.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        norm, norms, error = rows_of(channel, self.capture.array(channel.name, self.frame), *NAMES, ERROR)
        lag = np.arange(len(norm))
        for line, values in zip(self.lines, (norm, norms), strict=True):
            line.setData(lag, logarithm(values))
        estimated = bool((error > 0).any())
        self.band.setVisible(estimated)
        for edge, side in zip(self.edges, (-2.0, 2.0), strict=True):
            edge.setVisible(estimated)
            edge.setData(lag, logarithm(np.maximum(norm + side * error, norm * 1e-2)))
        every = logarithm(np.concatenate((norm, norms)))
        every = every[np.isfinite(every)]
        top = float(every.max()) if len(every) else 0.0
        bottom = max(float(every.min()), top - 2 * DECADES) if len(every) else -1.0
        self.plot.vb.setYRange(bottom - 0.3, top + 0.3, padding=0)
        self.plot.vb.setXRange(-0.5, max(1, len(lag)) - 0.5, padding=0)
        self.plot.set_title(self.parts(), "" if channel.method == "exact" else channel.method)

    def parts(self) -> str:
        """How much of the gradient is immediate, as text."""
        parts = (self.scalar(name) for name in ("total_norm", "immediate_norm", "immediate_cosine"))
        return immediate_part(*parts).sentence

    def follow(self, new: Position, old: Position) -> None:
        """A chosen place follows the cursor's place; loss step and source step are marked."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        self.row.show_row(new.step)
        self.row.plot.show_cursor(new.key)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the map: the step of the loss, and the step of the use; over the sums a lag is marked."""
        if plot is self.plot:
            self.marked.set(plot, max(0, round(x)))
        elif self.capture is not None and (channel := self.shown(MAP)) is not None:
            last = self.capture.extent(channel.name, self.frame)[0] - 1
            self.looking.move(step=min(max(0, round(y)), last), key=min(max(0, round(x)), last), place=channel.place)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The item under the cursor, and the check."""
        rows: list[tuple[str, str]] = []
        channel, t, k = self.shown(MAP), position.step, position.key
        if channel is None or self.capture is None:
            return rows
        what = f"{self.which.currentText()}  {channel.place}"
        size = self.capture.extent(channel.name, self.frame)[0]
        if t is not None and k is not None and t < size and k < size:
            value = exact_at(self.capture, channel.name, self.frame, t, k)
            rows.append((f"gradient of loss {t} through the use at {k}, {what}", measured(value, channel.unit)))
        rows += self._sums_at_lag(what)
        error = self.scalar("check_error")
        shown = f"{error:.1e}" if np.isfinite(error) else number(error)
        rows.append((f"sum of all items against autograd, {what}", shown))
        return rows

    def _sums_at_lag(self, what: str) -> list[tuple[str, str]]:
        """Both sums at the lag that is marked."""
        channel = self.shown(LAG)
        if channel is None or self.capture is None:
            return []
        lag = self.marked.at(self.plot, self.capture.extent(channel.name, self.frame)[1])
        if lag is None:
            return []
        values = exact(self.capture, channel.name, self.frame, (slice(None), slice(lag, lag + 1)))[:, 0]
        named = zip(NAMES, rows_of(channel, values, *NAMES), strict=True)
        return [(f"{name} [lag {lag}], {what}", measured(value, channel.unit)) for name, value in named]

    def data(self) -> dict[str, Array]:
        """Map and sums of the chosen place and parameter."""
        assert self.capture is not None
        shown = [channel for channel in (self.shown(MAP), self.shown(LAG)) if channel is not None]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in shown}


def floored(values: Array, channel: Channel) -> Levels:
    """Levels of a logarithmic map that end a few decades below its largest entry, and count what lies beyond."""
    return quantise.floored(values, channel.scale, channel.limits, decades=DECADES, masked=True)
