"""Training: the training log beside the checkpoint, one plot above the other over the training iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.capture import series
from inspector.gui.panel.base import Panel, number
from inspector.gui.panel.exact import or_why
from inspector.gui.panel.labelled import coordinates
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.axes import LogAxis, style_axis
from inspector.gui.widgets.legend import Legend
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.stepplot import StepPlot, curve, decimated, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import ITERATION_DOMAIN, Channel

Array = npt.NDArray[Any]
CELLS = 1200
HEIGHT, MOST_PLOTS = 130, 12
"""Pixels for each plot, and the number of plots that are drawn."""
WIDE = 20.0
"""A plot whose numbers are all positive and span more than this factor has a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its plot, the name of its curve there ("" where it is alone), and its numbers."""

    group: str
    name: str
    iterations: Array
    values: Array
    channel: str


@PANELS.register("training")
class Training(Panel):
    """(statistic, iteration) channels of kind "training", over axes whose coordinates number the iterations.

    The cursor moves along the axis of the longest table.
    """

    tab_order = 180
    key, title = "training", "Training"
    hint = (
        "Loss, gradient norm and whatever else training logged in a history.json beside the checkpoint, over the "
        "training iterations. A dashed line marks this checkpoint."
    )
    shows = ("training",)
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Tables by iteration."""
        return channel.kind == "training" and channel.dims == ("statistic", "iteration")

    def concerns(self, name: str) -> bool:
        """A training log that could not be read."""
        return name.endswith(":training")

    def build(self) -> None:
        """Plots are made for the columns that exist."""
        self.looking.axis = ITERATION_DOMAIN
        self.groups: tuple[str, ...] = ()
        self.made: list[tuple[StepPlot, Legend, pg.InfiniteLine]] = []
        """Every plot that was ever needed; another capture hides some of them. A plot that is removed and released
        while its legend is still in it crashes the process."""
        self.numbers: Array = np.zeros(0)
        """The iteration at each position of the axis along which the cursor moves."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for plot, legend, _ in self.made:
            plot.set_theme(theme)
            legend.set_theme(theme)
        super().set_theme(theme)

    def columns(self) -> list[Column]:
        """Every column of every table; the part of its name before a colon is its plot."""
        assert self.capture is not None
        found = []
        for channel in self.channels():
            numbers, rows = series(self.capture, channel, self.frame)
            known = np.isfinite(numbers)  # where the iteration is not known, neither is the place of a value
            for name, values in rows.items():
                group, _, own = name.partition(": ")
                found.append(Column(group, own, numbers[known], values[known], channel.name))
        return found

    def _follow_axis(self) -> None:
        """Follow the axis of the longest table."""
        assert self.capture is not None
        capture, frame = self.capture, self.frame
        longest = max(self.channels(), key=lambda channel: int(capture.extent(channel.name, frame)[1]))
        self.looking.axis = longest.domain("iteration")
        self.numbers = series(capture, longest, frame)[0]

    def update_contents(self) -> None:
        """One plot for each group, all over the same iterations."""
        self._follow_axis()
        columns = self.columns()
        groups = tuple(dict.fromkeys(column.group for column in columns))[:MOST_PLOTS]
        if groups != self.groups:
            self._arrange(groups)
        first, last = self._span(columns)
        for plot, legend, group in zip(self.shown, self.legends, groups, strict=True):
            plot.vb.setXRange(first, max(last, first + 1), padding=0.01)
            self._draw(plot, legend, [column for column in columns if column.group == group])
        step = self.step()
        for line in self.mark:
            line.setVisible(step is not None)
            line.setPos(step if step is not None else 0)

    @property
    def shown(self) -> list[StepPlot]:
        """The plots of the groups."""
        return [plot for plot, _, _ in self.made[: len(self.groups)]]

    @property
    def legends(self) -> list[Legend]:
        """Their legends."""
        return [legend for _, legend, _ in self.made[: len(self.groups)]]

    @property
    def mark(self) -> list[pg.InfiniteLine]:
        """The lines at the checkpoint."""
        return [line for _, _, line in self.made[: len(self.groups)]]

    def _arrange(self, groups: tuple[str, ...]) -> None:
        """As many plots as groups, the last with the axis title."""
        assert self.capture is not None
        word = clean(self.capture.axis(self.looking.axis, self.frame).title)
        while len(self.made) < len(groups):
            self.made.append(self._make(len(self.made)))
        self.groups = groups
        for row, (plot, _, _) in enumerate(self.made):
            plot.setVisible(row < len(groups))
            plot.label_bottom(word if row == len(groups) - 1 else "")
        self.figure.setMinimumHeight(max(self.needs_height, HEIGHT * len(groups)))

    def _make(self, row: int) -> tuple[StepPlot, Legend, pg.InfiniteLine]:
        plot = StepPlot(None, self.theme, bottom="")
        plot.vb.setMouseEnabled(False, False)
        line = pg.InfiniteLine(angle=90)
        plot.addItem(line, ignoreBounds=True)
        self.figure.addItem(plot, row=row, col=0)
        return plot, Legend(plot, theme=self.theme), line

    def _draw(self, plot: StepPlot, legend: Legend, columns: list[Column]) -> None:
        numbers = np.concatenate([column.values[np.isfinite(column.values)] for column in columns])
        log = bool(len(numbers) and numbers.min() > 0 and numbers.max() > WIDE * numbers.min())
        self._set_axis(plot, log)
        legend.clear()
        for old in [item for item in plot.items if isinstance(item, pg.PlotDataItem)]:
            plot.removeItem(old)
        for n, column in enumerate(columns):
            line = curve(self.theme, n)
            values = logarithm(column.values) if log else column.values
            line.setData(*thinned(column.iterations, values))
            plot.addItem(line)
            if column.name:
                legend.addItem(line, column.name)
        plot.set_title(columns[0].group)
        shown = np.log10(numbers) if log else numbers
        low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
        room = max(0.06 * (high - low), 1e-3 * abs(high), 1e-9)
        plot.vb.setYRange(low - room, high + room, padding=0)
        plot.getAxis("left").setRange(low - room, high + room)  # a new axis is notified of changes only

    def _set_axis(self, plot: StepPlot, log: bool) -> None:
        if isinstance(plot.getAxis("left"), LogAxis) is not log:
            plot.setAxisItems({"left": LogAxis() if log else pg.AxisItem("left")})
            plot.getAxis("left").enableAutoSIPrefix(False)
            plot.getAxis("left").setWidth(58)
        style_axis(plot.getAxis("left"), self.theme)
        for line in (item for item in plot.items if item in self.mark):
            line.setPen(pg.mkPen(self.theme.muted, width=1, style=Qt.PenStyle.DashLine))

    def _span(self, columns: list[Column]) -> tuple[float, float]:
        found = np.concatenate([column.iterations for column in columns])
        return (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)

    def step(self) -> int | None:
        """The iteration of the checkpoint that is shown, where it is known."""
        assert self.capture is not None
        frames = {frame.index: frame.step for frame in self.capture.frames}
        return frames.get(self.frame if self.frame in frames else max(frames, default=-1))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the iteration that is nearest, in every plot."""
        if np.isfinite(self.numbers).any():
            self.looking.move(step=int(np.nanargmin(np.abs(self.numbers - x))))

    def follow(self, new: Position, old: Position) -> None:
        """The cursor's iteration is marked in every plot."""
        iteration = self.iteration(new)
        for plot in self.shown:
            plot.show_cursor(iteration)

    def iteration(self, position: Position) -> float | None:
        """The iteration under the cursor, or None."""
        step = position.step
        known = step is not None and step < len(self.numbers) and bool(np.isfinite(self.numbers[step]))
        return float(self.numbers[step]) if known and step is not None else None

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every column at the cursor's iteration, else at this checkpoint, else at the end of training.

        For columns measured less often, the last value before it.
        """
        if self.state != "figure":
            return []
        assert self.capture is not None
        here, rows = self.iteration(position.along(self.looking.axis)), []
        here = self.step() if here is None else here
        word = clean(self.capture.axis(self.looking.axis, self.frame).title)
        for column in self.columns():
            known = np.flatnonzero(column.iterations <= (math.inf if here is None else here))
            if len(known):
                at = int(known[-1])
                name = f"{column.group}: {column.name}" if column.name else column.group
                value = or_why(column.values[at], self.capture, column.channel, self.frame)
                rows.append((f"{name} [{word} {column.iterations[at]:.15g}]", number(value)))
        return rows

    def data(self) -> dict[str, Array]:
        """Every table, and the iterations along it."""
        assert self.capture is not None
        found = {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}
        return {**found, **coordinates(self.capture, self.channels(), "iteration", self.frame)}


def thinned(steps: Array, values: Array) -> tuple[Array, Array]:
    """A curve as it is, or its minima and maxima in cells where there are more points than can be distinguished."""
    if len(values) <= 2 * CELLS:
        return steps, values
    starts = np.linspace(0, len(values), CELLS, endpoint=False).astype(int)
    low, high = (how.reduceat(values, starts) for how in (np.fmin, np.fmax))
    return decimated(low, high, float(steps[0]), float(steps[-1] - steps[0]) / CELLS)
