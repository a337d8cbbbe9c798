"""Truncation: the error of truncated backpropagation through time, by K; the smallest K overall and at each step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.analysis.truncation import truncation_verdict
from inspector.gui.panel.base import Panel, number, set_options
from inspector.gui.panel.channel_choice import chosen, offer_channels
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import row_of, rows_of, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.axes import LogAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
CURVE, BY_STEP = ("statistic", "truncation"), ("statistic", "step")
NUMBERS = ("K", "relative error", "cosine", "share of the cost")
TOLERANCES = ((0.1, "10 %"), (0.01, "1 %"))
BY_TOLERANCE = tuple(text.replace(" ", "") for _, text in TOLERANCES)
WHOLE = "truncation/all"
LOWEST = -6.0
"""log10 of the smallest error that the axis shows."""


@PANELS.register("truncation")
class Truncation(Panel):
    """(statistic, truncation) channels of kind "truncation", with the (statistic, step) channel of the same place."""

    tab_order = 130
    menu_group = "gradients"
    key, title = "truncation", "Truncation"
    of_recurrences = True
    hint = (
        "The error of truncated backpropagation through time, where each loss goes back only K − 1 steps. Needs a "
        "recurrent layer and a loss."
    )

    extra = ("truncation",)
    needs_height = 400

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Curves over K, and the smallest K by step."""
        return channel.kind == "truncation" and channel.dims in (CURVE, BY_STEP)

    def concerns(self, name: str) -> bool:
        """Truncations that could not be computed."""
        return ":truncation" in name

    def build(self) -> None:
        """Error, then cosine and cost, over K; the smallest K over steps."""
        self.where = self.add_choice("Layer", "Place in the model")
        self.which = self.add_choice("Parameter", "Parameter")
        self.error = StepPlot(None, self.theme, label="relative error", bottom="", log=True)
        self.error.setAxisItems({"left": LogAxis()})
        self.error.getAxis("left").setWidth(58)
        self.rest = StepPlot(None, self.theme, label="share", bottom="K: steps that each loss goes back", log=True)
        self.rest.vb.setXLink(self.error.vb)
        self.by_step = StepPlot(self.steps, self.theme, label="smallest K")
        self.lines = [curve(self.theme, n, width=1.8, dashed=n == 2) for n in range(3)]
        for line, plot in zip(self.lines, (self.error, self.rest, self.rest), strict=True):
            plot.addItem(line)
        self.levels = [pg.InfiniteLine(math.log10(level), angle=0) for level, _ in TOLERANCES]
        self.samples = [pg.PlotDataItem() for _ in TOLERANCES]
        self.marks = [pg.InfiniteLine(angle=90) for _ in range(2 * len(TOLERANCES))]
        for number_, mark in enumerate((*self.levels, *self.marks)):
            (self.error if number_ < 4 else self.rest).addItem(mark, ignoreBounds=True)
        self.trails = [curve(self.theme, n) for n in range(len(TOLERANCES))]
        for trail in self.trails:
            self.by_step.addItem(trail)
        errors = Legend(self.error)
        for n, (sample, (_, text)) in enumerate(zip(self.samples, TOLERANCES, strict=True)):
            own = self.marks[n :: len(TOLERANCES)]
            errors.addItem(sample, f"{text} and the smallest K within it", self.levels[n], *own)
        self.legends = [
            errors,
            Legend(self.rest, self.lines[1:], ("cosine to the exact gradient", "share of the cost")),
            Legend(self.by_step, self.trails, tuple(f"within {text}" for _, text in TOLERANCES)),
        ]
        for row, plot in enumerate((self.error, self.rest, self.by_step)):
            self.figure.addItem(plot, row=row, col=0)
        for row, share in enumerate((5, 4, 4)):
            self.figure.ci.layout.setRowStretchFactor(row, share)
        self.plots = [self.error, self.rest, self.by_step]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        style_axis(self.error.getAxis("left"), theme, "relative error")
        for n, line in enumerate(self.lines):
            style = Qt.PenStyle.DashLine if n == 2 else Qt.PenStyle.SolidLine
            line.setPen(pg.mkPen(theme.series[(0, 2, 7)[n]], width=1.8, style=style))
        for n, trail in enumerate(self.trails):
            trail.setPen(pg.mkPen(theme.series[(4, 1)[n]], width=1.4))
        for n in range(len(TOLERANCES)):
            pen = pg.mkPen(theme.series[(4, 1)[n]], width=1, style=Qt.PenStyle.DashLine)
            for mark in (self.levels[n], self.samples[n], *self.marks[n :: len(TOLERANCES)]):
                mark.setPen(pen)
        for legend in self.legends:
            legend.set_theme(theme)

    def here(self, dims: tuple[str, ...]) -> list[Channel]:
        """Channels of the chosen place."""
        return [c for c in self.channels() if c.dims == dims and c.place == self.where.currentText()]

    def shown(self) -> Channel | None:
        """The curve of the chosen parameter."""
        return chosen(self.which, self.here(CURVE))

    def update_contents(self) -> None:
        """Curves of the chosen place and parameter, and its steps."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        offer_channels(self.which, sorted(self.here(CURVE), key=lambda channel: channel.signal != WHOLE))
        self._draw_curves(self.shown())
        self._draw_steps(next(iter(self.here(BY_STEP)), None))

    def _draw_curves(self, channel: Channel | None) -> None:
        for plot in (self.error, self.rest):
            plot.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        ks, error, cosine, cost = rows_of(channel, self.capture.array(channel.name, self.frame), *NUMBERS)
        x = logarithm(ks)
        for line, values in zip(self.lines, (logarithm(error), cosine, cost), strict=True):
            line.setData(x, values)
        seen = self.lines[0].getData()[1]
        seen = seen[np.isfinite(seen)] if seen is not None else np.zeros(0)
        low = max(LOWEST, min(float(seen.min()), -2.0)) if len(seen) else -3.0
        top = max(float(seen.max()) if len(seen) else 0.0, 0.0)
        self.error.vb.setYRange(low - 0.2, top + 0.1 * (top - low), padding=0)
        finite = cosine[np.isfinite(cosine)]
        self.rest.vb.setYRange(min(-0.04, float(finite.min()) - 0.04) if len(finite) else -0.04, 1.08, padding=0)
        self.error.vb.setXRange(0, max(0.3, float(x[-1]) if math.isfinite(x[-1]) else 0.3), padding=0.02)
        for n in range(len(TOLERANCES)):
            smallest = self.smallest(channel, n)
            for mark in self.marks[n :: len(TOLERANCES)]:
                mark.setVisible(math.isfinite(smallest))
                mark.setPos(math.log10(smallest) if math.isfinite(smallest) else 0.0)
        self.error.set_title(f"{channel.place}, {channel.title}", self.sentence(channel, ks, cost))

    def smallest(self, channel: Channel, tolerance: int) -> float:
        """The smallest K within a tolerance, as the engine computed it; NaN where there is none."""
        assert self.capture is not None
        wanted = f"{channel.name}/smallest_k_{TOLERANCES[tolerance][1].split()[0]}_percent"
        return scalar_of(self.capture, wanted, channel.name, self.frame)

    def sentence(self, channel: Channel, ks: Array, cost: Array) -> str:
        """A summary of the curves."""
        smallest = [(text, self.smallest(channel, n)) for n, (_, text) in enumerate(TOLERANCES)]
        return truncation_verdict(ks, cost, smallest).sentence

    def _draw_steps(self, channel: Channel | None) -> None:
        self.by_step.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = np.stack(rows_of(channel, self.capture.array(channel.name, self.frame), *BY_TOLERANCE))
        steps = np.arange(values.shape[1])
        for trail, row in zip(self.trails, values, strict=True):
            trail.setData(steps, row.astype(np.float64))
        finite = values[np.isfinite(values)]
        top = float(finite.max()) if len(finite) else 1.0
        self.by_step.vb.setYRange(0, 1.3 * top, padding=0)
        self.by_step.step_axis.set_names(self.step_names())
        self.by_step.set_title(f"smallest K for the loss of each step, all parameters ({channel.method})")

    def follow(self, new: Position, old: Position) -> None:
        """A chosen place follows the cursor's place."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the steps, the cursor goes to the step under the mouse; over the curves the nearest K is marked."""
        channel = self.shown()
        if plot is self.by_step:
            self.looking.move(step=max(0, round(x)))
        elif channel is not None and self.capture is not None:
            known = logarithm(self.capture.array(channel.name, self.frame)[row_of(channel, "K")])
            at = int(np.argmin(np.abs(known - x)))
            for each in (self.error, self.rest):
                self.marked.set(each, at, float(known[at]))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The smallest K, overall and at the step."""
        rows: list[tuple[str, str]] = []
        channel, step = self.shown(), position.step
        rows += self._at_k(channel)
        for n, (_, text) in enumerate(TOLERANCES):
            if channel is not None:
                least = self.smallest(channel, n)
                shown = "none" if math.isnan(least) else number(least)
                rows.append((f"smallest K within {text}  {channel.place}", shown))
        for channel in self.here(BY_STEP):
            assert self.capture is not None
            if step is not None and step < self.capture.extent(channel.name, self.frame)[1]:
                values = exact(self.capture, channel.name, self.frame, (slice(None), slice(step, step + 1)))[:, 0]
                shown = " / ".join(number(value) for value in rows_of(channel, values, *BY_TOLERANCE))
                rows.append((f"smallest K [{step}] {' / '.join(text for _, text in TOLERANCES)}", shown))
        return rows

    def _at_k(self, channel: Channel | None) -> list[tuple[str, str]]:
        """Error and cost of a truncation to the K that is marked."""
        if channel is None or self.capture is None:
            return []
        at = self.marked.at(self.error, self.capture.extent(channel.name, self.frame)[1])
        if at is None:
            return []
        column = exact(self.capture, channel.name, self.frame, (slice(None), slice(at, at + 1)))[:, 0]
        named = dict(zip(NUMBERS, rows_of(channel, column, *NUMBERS), strict=True))
        k: Any = named.pop(NUMBERS[0])
        where = f"K = {k if isinstance(k, str) else format(k, 'g')}"
        return [(f"{name} [{where}]  {channel.place}", number(value)) for name, value in named.items()]

    def data(self) -> dict[str, Array]:
        """The curve that is shown, and the smallest K by step."""
        assert self.capture is not None
        shown = [channel for channel in (self.shown(), *self.here(BY_STEP)) if channel is not None]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in shown}
