"""Innovations: what a Kalman filter did not expect, whether it is of the right size and without memory; its gain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.latent.consistency import innovation_verdict
from inspector.gui.panel.base import measured, number, set_options
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import scalar_of
from inspector.gui.panel.latent.sheet import NORMAL, Sheet
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.banded_lines import CROWD
from inspector.gui.widgets.charts.filled_lines import Filled, FilledLines
from inspector.gui.widgets.plots.source import drawable
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.summary_text import SummaryText
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
BY_UNIT, BY_STEP, GAIN, MEMORY = ("step", "unit"), ("step",), ("step", "component"), ("lag", "unit")
MOST_LINES = 6


class Innovations(Sheet):
    """Channels of kind "innovation": standardised (step, unit), squared (step,), (step, component), (lag, unit)."""

    title = "innovations"

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything that is said of innovations."""
        return channel.kind == "innovation" and channel.dims in (BY_UNIT, BY_STEP, GAIN, MEMORY)

    def build(self) -> None:
        """Innovations, their squares and the gain above each other; autocorrelation at the right; a summary."""
        self.where = self.add_choice("Module", "Place in the model")
        self.innovation = StepPlot(self.panel.steps, self.panel.theme, label="σ")
        self.nis = StepPlot(self.panel.steps, self.panel.theme, label="NIS")
        self.gain = StepPlot(self.panel.steps, self.panel.theme, label="gain")
        self.memory = StepPlot(None, self.panel.theme, label="correlation", bottom="lag in steps")
        self.lines_of_innovation = FilledLines(self.innovation, self.panel.theme, MOST_LINES)
        self.lines_of_nis = FilledLines(self.nis, self.panel.theme, 1)
        self.lines_of_gain = FilledLines(self.gain, self.panel.theme, MOST_LINES)
        self.lines_of_memory = FilledLines(self.memory, self.panel.theme, MOST_LINES)
        self.parts = {
            BY_UNIT: (self.innovation, self.lines_of_innovation), BY_STEP: (self.nis, self.lines_of_nis),
            GAIN: (self.gain, self.lines_of_gain), MEMORY: (self.memory, self.lines_of_memory),
        }  # fmt: skip
        self.bounds = {plot: [pg.InfiniteLine(0, angle=0) for _ in "ab"] for plot, _ in self.parts.values()}
        for plot, lines in self.bounds.items():
            for line in lines:
                plot.addItem(line, ignoreBounds=True)
        self.summary = SummaryText(self.panel.theme)
        for row, plot in enumerate((self.innovation, self.nis, self.gain)):
            self.figure.addItem(plot, row=row, col=0)
        self.figure.addItem(self.memory, row=0, col=1, rowspan=3)
        self.figure.addItem(self.summary, row=3, col=0, colspan=2)
        grid = self.figure.layout
        for column, share in ((0, 5), (1, 3)):
            grid.setColumnStretchFactor(column, share)
            grid.setColumnPreferredWidth(column, 100 * share)
        self.plots = [plot for plot, _ in self.parts.values()]
        self.panel.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for plot, lines in self.parts.values():
            lines.set_theme(theme)
            for bound in self.bounds[plot]:
                bound.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.summary.set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.drawn and self.panel.in_sight():
            self._draw()

    def of(self, *dims: str) -> Channel | None:
        """The channel of the chosen module over some axes."""
        place = self.where.currentText()
        return next((one for one in self.channels() if one.dims == dims and one.place == place), None)

    def update_contents(self) -> None:
        """The module that is chosen."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        for plot in self.plots:
            plot.step_axis.set_names(self.panel.step_names() if plot.steps is not None else ())
        self._draw()
        self.summary.set_text(self.sentence())

    def _draw(self) -> None:
        for dims, (plot, lines) in self.parts.items():
            channel = self.of(*dims)
            plot.setVisible(channel is not None)
            if channel is not None:
                lines.show(self._filled_lines(channel), plot.vb.width())
                self._bound(plot, self.limits(channel))
                plot.set_title(self._told(channel) + (CROWD if lines.dense else ""))
                if plot is self.memory:
                    lags = self.capture.extent(channel.name, self.frame)[0]
                    plot.vb.setXRange(0.5, max(2, lags) - 0.5, padding=0)

    def _told(self, channel: Channel) -> str:
        names = {
            BY_UNIT: "standardised innovations, 95 % within ±1.96", GAIN: "gain: what an innovation adds to the state",
            BY_STEP: "innovations squared (NIS), with their 95 % χ² band",
            MEMORY: "autocorrelation, 95 % within ±1.96/√t",
        }  # fmt: skip
        beyond = channel.shape[-1] if len(channel.dims) > 1 else 1
        more = f"; {beyond - MOST_LINES} more are not drawn" if beyond is not None and beyond > MOST_LINES else ""
        return f"{names[channel.dims]}{more}"

    def limits(self, channel: Channel) -> tuple[float, float] | None:
        """Between which most numbers of a channel should be; None where nothing is said."""
        if channel.dims == BY_UNIT:
            return -NORMAL, NORMAL
        if channel.dims == BY_STEP:
            low, high = (
                scalar_of(self.capture, f"{channel.name}/{end}", channel.name, self.frame) for end in ("low", "high")
            )
            return None if math.isnan(low) or math.isnan(high) else (low, high)
        standard = self.of(*BY_UNIT)
        if channel.dims == MEMORY and standard is not None:
            reach = NORMAL / math.sqrt(max(1, self.capture.extent(standard.name, self.frame)[0]))
            return -reach, reach
        return None

    def _bound(self, plot: StepPlot, limits: tuple[float, float] | None) -> None:
        for line, at in zip(self.bounds[plot], limits or (0.0, 0.0), strict=True):
            line.setVisible(limits is not None)
            line.setPos(at)

    def _filled_lines(self, channel: Channel) -> list[Filled]:
        """Each unit as a line over the steps in view, or over all lags."""
        length = self.capture.extent(channel.name, self.frame)[0]
        first, stop = 1, length  # of lags: the correlation at lag 0 is 1
        if channel.dims[0] == "step":
            first, stop = max(0, int(self.panel.steps.bounds[0])), min(length, int(self.panel.steps.bounds[1]) + 2)
        if stop <= first:
            return []
        values = drawable(self.capture.block(channel.name, self.frame, (slice(first, stop),))).astype(np.float64)
        columns = values.reshape(len(values), -1).T[:MOST_LINES]
        names = channel.labels.get("component") or (
            [channel.title] if len(columns) == 1 else [f"x{n}" for n in range(len(columns))]
        )
        return [Filled(name, column, first=first) for name, column in zip(names, columns, strict=False)]

    def sentence(self) -> str:
        """Whether the filter's innovations are those that it expects."""
        standard, nis = self.of(*BY_UNIT), self.of(*BY_STEP)
        if standard is None or nis is None or self.panel.differs:
            return ""
        columns, squares = (self.capture.array(one.name, self.frame) for one in (standard, nis))
        if not (np.isfinite(columns).all() and np.isfinite(squares).all()) or np.ma.is_masked(squares):
            return "Not all innovations are known and finite, so the filter is not judged."
        told = innovation_verdict(np.asarray(squares), np.asarray(columns)).sentence
        return f"{told[0].upper()}{told[1:]}."

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its filter."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse; a lag is marked."""
        if plot is self.memory:
            self.panel.marked.set(plot, max(0, round(x)))
        else:
            self.panel.looking.move(step=round(x), place=self.where.currentText())

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Innovations, their square and the gain at the step; the correlation of the lag that is marked."""
        rows: list[tuple[str, str]] = []
        for dims in self.parts:
            channel = self.of(*dims)
            if channel is None:
                continue
            length = self.capture.extent(channel.name, self.frame)[0]
            at = self.panel.marked.at(self.memory, length) if dims == MEMORY else position.step
            if at is None or at >= length:
                continue
            values = exact(self.capture, channel.name, self.frame, (slice(at, at + 1),)).reshape(-1)[:MOST_LINES]
            told = ", ".join(measured(value, channel.unit) for value in values)
            rows.append((f"{channel.title} [{at}]  {channel.place}", told))
            limits = self.limits(channel)
            if limits is not None:
                rows.append((f"95 % band of {channel.title}", f"{number(limits[0])} to {number(limits[1])}"))
        return rows

    def data(self) -> dict[str, Array]:
        """Every channel of the chosen module, whole."""
        own = [one for one in self.channels() if one.place == self.where.currentText()]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in own}
