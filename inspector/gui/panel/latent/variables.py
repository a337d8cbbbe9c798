"""Latents: means of hidden variables with their bands, samples, and the terms of the bound by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.panel.arranged import is_wide
from inspector.gui.panel.base import measured, set_options
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import row_of
from inspector.gui.panel.latent.sheet import NORMAL, Sheet, place
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.banded_lines import CROWD
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.charts.filled_lines import Filled, FilledLines
from inspector.gui.widgets.gaps import NONE, gaps_of
from inspector.gui.widgets.plots.source import drawable
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
ESTIMATE, BY_UNIT, BY_STEP = ("step", "unit", "statistic"), ("step", "unit"), ("step",)
ONCE, ONCE_BY_UNIT = ("unit", "statistic"), ("unit",)
MOST_LINES, MOST_UNITS = 6, 512
NATS = "nat"
SHARES = (3, 3, 2)
"""Parts of the room of the three plots, above or beside each other."""
BESIDE, ABOVE = 220, 150
"""Pixels of height of plots beside each other, and of each of those above each other."""


class Variables(Sheet):
    """Channels of kind "latent": estimates (…, unit, statistic), samples and divergences (…, unit), terms (step,)."""

    title = "variables"

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything that is said of hidden variables by step, and once a sequence."""
        return channel.kind == "latent" and channel.dims in (ESTIMATE, BY_UNIT, BY_STEP, ONCE, ONCE_BY_UNIT)

    def build(self) -> None:
        """The variable and its unit; the estimates above the terms."""
        self.which = self.add_choice("Variable", "Hidden variable")
        self.unit = self.add_choice("Unit", "Unit of the hidden variable")
        self.upper = StepPlot(self.panel.steps, self.panel.theme, label="value")
        self.units = StepPlot(None, self.panel.theme, label="value", bottom="unit")
        self.lines = FilledLines(self.upper, self.panel.theme, MOST_LINES)
        self.unit_lines = FilledLines(self.units, self.panel.theme, MOST_LINES)
        self.terms = Curves(self.panel.steps, self.panel.theme, label=NATS, log=False)
        for column, plot in enumerate((self.upper, self.units, self.terms.plot)):
            self.figure.addItem(plot, row=0, col=column)
        self.plots = [self.upper, self.units, self.terms.plot]
        self._arranged: tuple[bool, ...] = ()
        self.panel.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.lines, self.unit_lines, self.terms):
            part.set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.drawn and self.panel.in_sight():
            self._draw()

    def groups(self) -> dict[str, list[Channel]]:
        """Channels by variable: what stands before the last slash of their names, estimates first."""
        found: dict[str, list[Channel]] = {}
        for channel in self.channels():
            found.setdefault(channel.name.rpartition("/")[0], []).append(channel)
        order = sorted(found, key=lambda name: not any("statistic" in one.dims for one in found[name]))
        return {name: found[name] for name in order}

    def group(self) -> list[Channel]:
        """The channels of the variable that is shown."""
        return self.groups().get(self.which.currentData() or "", [])

    def of(self, *dims: tuple[str, ...]) -> list[Channel]:
        """Those over some axes."""
        return [channel for channel in self.group() if channel.dims in dims]

    def update_contents(self) -> None:
        """The variable that is chosen."""
        offer(self.which, {name: self._told(name) for name in self.groups()})
        counts = [
            self.capture.extent(one.name, self.frame)[one.dims.index("unit")]
            for one in self.group()
            if "unit" in one.dims
        ]
        set_options(self.unit, [str(n) for n in range(min(MOST_UNITS, max(counts, default=0)))])
        for plot in self.plots:
            plot.step_axis.set_names(self.panel.step_names() if plot.steps is not None else ())
        self._draw()

    @staticmethod
    def _told(name: str) -> str:
        place, _, signal = name.rpartition(":")
        return f"{signal.removeprefix('latent/')}, {place}"

    def number(self) -> int:
        """The unit that is shown."""
        text = self.unit.currentText()
        return int(text) if text.isdecimal() else 0

    def _draw(self) -> None:
        by_step = self.of(ESTIMATE) + [one for one in self.of(BY_UNIT) if one.unit != NATS]
        once, terms = self.of(ONCE, ONCE_BY_UNIT), self.of(BY_STEP)
        self._arrange([bool(by_step), bool(once), bool(terms)])
        name = self._told(self.which.currentData() or "")
        if by_step:
            self.lines.show([self._by_step(one) for one in by_step[:MOST_LINES]], self.upper.vb.width())
            beyond = f"; {len(by_step) - MOST_LINES} more are not drawn" if len(by_step) > MOST_LINES else ""
            self.upper.set_title(
                f"{name}: unit {self.number()}, means with 95 % bands (±1.96 σ){beyond}{self._crowd()}"
            )
            gaps = NONE
            for one in by_step[:MOST_LINES]:
                gaps |= gaps_of(self.capture, one.name, self.frame, y=None, at={1: self.number()})
            self.upper.mark_gaps(gaps)
        if once:
            of_units = [self._of_units(one) for one in once[:MOST_LINES]]
            self.unit_lines.show(of_units, self.units.vb.width())
            self.units.vb.setXRange(-0.4, max(len(line.values) for line in of_units) - 0.6, padding=0)
            self.units.set_title(f"{name}: every unit, means with 95 % bands (±1.96 σ)")
        if terms:
            self.terms.show(self.capture, terms, self.frame, self.panel.steps.bounds)
            self.terms.plot.set_title(f"{name}: terms by step")

    def _arrange(self, drawn: list[bool]) -> None:
        """The plots that have something, in a wide panel beside each other."""
        wide, grid = is_wide(self.panel.width(), self.panel.height()), self.figure.layout
        arranged = (wide, *drawn)
        if arranged == self._arranged:
            return
        self._arranged = arranged
        plots = (self.upper, self.units, self.terms.plot)
        for plot in plots:
            place(grid, plot, 0, on=False)
        for at, (plot, on) in enumerate(zip(plots, drawn, strict=True)):
            place(grid, plot, 0 if wide else at, on=on, column=at if wide else 0)
            grid.setRowStretchFactor(at, int(at == 0) if wide else SHARES[at] * on)
            grid.setColumnStretchFactor(at, SHARES[at] * on if wide else int(at == 0))
            grid.setColumnPreferredWidth(at, 100 * SHARES[at] * on if wide else -1)
        self.needs_height = BESIDE if wide else max(BESIDE, ABOVE * sum(drawn))

    def _crowd(self) -> str:
        return CROWD if self.lines.dense else ""

    def _by_step(self, channel: Channel) -> Filled:
        """The unit of a channel over the steps in view."""
        steps, units = self.capture.extent(channel.name, self.frame)[:2]
        first, stop = max(0, int(self.panel.steps.bounds[0])), min(steps, int(self.panel.steps.bounds[1]) + 2)
        unit = self.number()
        if unit >= units or stop <= first:
            return Filled(channel.title, np.zeros(0))
        cut = (slice(first, stop), slice(unit, unit + 1))
        values = drawable(self.capture.block(channel.name, self.frame, cut))[:, 0].astype(np.float64)
        return self._line(channel, values, first)

    def _of_units(self, channel: Channel) -> Filled:
        values = drawable(self.capture.array(channel.name, self.frame)).astype(np.float64)
        return self._line(channel, values, 0)

    @staticmethod
    def _line(channel: Channel, values: Array, first: int) -> Filled:
        if "statistic" not in channel.dims:
            return Filled(channel.title, values, first=first, dots=channel.signal.endswith("/sample"))
        mean, deviation = (values[:, row_of(channel, one, "statistic")] for one in ("mean", "deviation"))
        return Filled(channel.title, mean, NORMAL * deviation, first)

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its first variable; another unit is shown where there is one of its number."""
        if new.place != old.place and new.place:
            own = [name for name in self.groups() if name.rpartition(":")[0] == new.place]
            if own and (self.which.currentData() or "") not in own:
                self.which.setCurrentIndex(self.which.findData(own[0]))
        if new.unit != old.unit and new.unit is not None and self.unit.findText(str(new.unit)) >= 0:
            self.unit.setCurrentText(str(new.unit))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse; among units the one under it is shown."""
        if plot is self.units:
            self.unit.setCurrentText(str(max(0, round(x))))
        else:
            self.panel.looking.move(step=round(x), place=(self.which.currentData() or "").rpartition(":")[0])

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Mean and standard deviation, sample and terms at the step, of the unit that is shown."""
        rows: list[tuple[str, str]] = []
        for channel in self.group():
            index = self._index(channel, position.step)
            if index is None:
                continue
            values = np.atleast_1d(exact(self.capture, channel.name, self.frame, index).reshape(-1))
            at = ", ".join(str(part.start) for part in index)
            told = " ± ".join(measured(self._statistic(channel, values, n), channel.unit) for n in range(len(values)))
            rows.append((f"{channel.title} [{at}]  {channel.place}", told))
        return rows

    @staticmethod
    def _statistic(channel: Channel, values: Array, n: int) -> Any:
        names: Sequence[str] = ("mean", "deviation")
        return values[row_of(channel, names[n], "statistic")] if "statistic" in channel.dims else values[n]

    def _index(self, channel: Channel, step: int | None) -> tuple[slice, ...] | None:
        """Where the cursor's step and the unit that is shown are in a channel; None where they are not."""
        extent = self.capture.extent(channel.name, self.frame)
        wanted = {"step": step, "unit": self.number()}
        found = []
        for size, dim in zip(extent, channel.dims, strict=True):
            if dim not in wanted:
                continue
            at = wanted[dim]
            if at is None or at >= size:
                return None
            found.append(slice(at, at + 1))
        return tuple(found)

    def data(self) -> dict[str, Array]:
        """Every channel of the variable, whole."""
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.group()}
