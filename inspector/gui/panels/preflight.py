"""Pre-flight: what the tests of a model's structure and trial steps say, the outputs that moved when an input was
replaced, in which module a change came in, and the loss after trial steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.analysis.before_training.preflight import EVERY, found
from inspector.analysis.before_training.verdicts import MARKS, Verdict
from inspector.gui.panel.arranged import Arranged, is_wide
from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.labelled import rows_of, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.lengths_plot import LengthsPlot
from inspector.gui.widgets.charts.reachplot import ReachPlot
from inspector.gui.widgets.gaps import NONE, gaps_of
from inspector.gui.widgets.images.quantise import floored
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.wrapped_text import WrappedText
from inspector.records import Channel

Array = npt.NDArray[Any]
MAP, BY_MODULE = ("source", "step"), ("module",)
BY_RATE, BY_ITERATION, BY_LAG = ("statistic", "point"), ("iteration",), ("statistic", "lag")
DIRECTIONS = {"sgd": "SGD", "adam": "Adam", "own": "the training's own step (dashed: its rate)"}
"""Of which the loss is drawn by learning rate: the ends of their signals, and names."""
WIDTHS = (1.8, 1.8, 5.0)
"""Of their lines: the own step, often the same as Adam's first, lies wider beneath."""
BY_LENGTH = ("statistic", "length")
REACH = ("trial/reach", "trial/reach/gradient")
OWN = "trial/other_lengths/steps"
OTHERS = (
    ("step",),
    ("value",),
    ("part", "step"),
    ("part", "value"),
    ("head",),
    ("statistic",),
    ("statistic", "pair"),
    ("statistic", "part"),
)
"""Of which the sentences tell."""
WORST = ("fault", "not tested", "fact", "holds")
PLOT = 190
"""Pixels of height of a plot with its title and axis, at least."""
SHARE = 3
"""Of the room of the map; of that of every other plot it is 2."""
EDGE, UNLIMITED = 4, 16_777_215.0
"""Pixels around a figure; a height that does not bound."""
LEAST = -9.0
"""Changes are drawn down to 10⁻⁹ of the largest output: below is rounding, also of float64 sums in another order."""


@PANELS.register("preflight")
class Preflight(Panel):
    """Channels of kind "structure" (the map of `structure/causal`, (module,) changes of the test that is chosen) and
    "trial" (losses by learning rate, and while one batch is learned by heart)."""

    tab_order = 177
    menu_group = "training"
    key, title = "preflight", "Pre-flight"
    hint = (
        "Tests of the model's structure: does it read later inputs, padding or the rest of its batch, see order, keep "
        "a state from call to call, generate with a cache as without? And trial steps: which learning rate raises the "
        "loss, is one batch learned by heart? The model is called some 200 times and trained for 100 steps, in a copy."
    )
    extra = EVERY
    by_steps = False
    needs_height = 240

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything that a structure test writes."""
        if channel.kind == "trial":
            return channel.dims in (
                BY_RATE,
                BY_ITERATION,
                BY_LAG,
                BY_LENGTH,
                ("statistic", "parameter"),
                ("statistic", "sequence"),
                ("statistic",),
            )
        return channel.kind == "structure" and channel.dims in (MAP, BY_MODULE, *OTHERS)

    def concerns(self, name: str) -> bool:
        """Tests that could not be made."""
        return ":structure/" in name or ":trial/" in name

    def build(self) -> None:
        """The sentences, the map of replaced inputs, and bars by module."""
        self.which = self.add_choice("Came in", "Test whose change is shown by module")
        last = (self.controls.itemAt(self.controls.count() - n) for n in (2, 1))
        self._of_which = [widget for item in last if item is not None and (widget := item.widget()) is not None]
        self.told = WrappedText(self.theme, lines=7, muted=True)
        self._make_map_and_bars()
        self._make_curves()
        self.plots = [self.row.plot, self.bars, self.rates, self.batch, self.lags, self.lengths]
        self.below = [self.cell, self.bars, self.rates, self.batch, self.lags, self.lengths]
        self.arranged = Arranged(self.figure, [self.told, *self.below])
        self._arrange(self.below)
        self.there: list[Any] = []
        """The plots that have something to show."""
        self.found: list[Verdict] = []
        self.replaced: Array = np.zeros(0, dtype=np.int64)
        """The inputs that were replaced, one for each row of the map."""

    def _make_map_and_bars(self) -> None:
        """What comes out where an input is replaced, and the change by module."""
        self.cell = self.figure.addLayout(row=1, col=0)
        self.row = MapRow(
            self.cell, 0, None, self.theme, label="input that is replaced", bottom="step of the output", square=True
        )
        self.row.map.setFlag(self.row.map.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.input_axis = StepAxis("left")
        self.row.plot.setAxisItems({"left": self.input_axis})
        self.input_axis.setWidth(58)
        self.bars = StepPlot(None, self.theme, label="change", bottom="module, in the order of their results")
        self.bars.setAxisItems({"left": LogAxis()})
        self.bars.getAxis("left").setWidth(58)
        self.items = pg.BarGraphItem(x=[], height=[], width=0.8)
        self.bars.addItem(self.items)

    def _make_curves(self) -> None:
        """The loss by learning rate and over steps on one batch, the reach by lag, the lengths."""
        self.rates = StepPlot(None, self.theme, label="loss after one step", bottom="learning rate", log=True)
        self.lines = [curve(self.theme, n, width=WIDTHS[n]) for n in range(len(DIRECTIONS))]
        self.lines[-1].setZValue(-1)
        for line in self.lines:
            self.rates.addItem(line)
        self.rate_now = pg.InfiniteLine(
            angle=90, pen=pg.mkPen(self.theme.series[2], width=1.8, style=Qt.PenStyle.DashLine)
        )
        self.rates.addItem(self.rate_now)
        self.legend = Legend(self.rates, self.lines, tuple(DIRECTIONS.values()))
        self.batch = StepPlot(None, self.theme, label="loss", bottom="step of training on this batch")
        self.learned = curve(self.theme, 2, width=1.8)
        self.batch.addItem(self.learned)
        self.lags = ReachPlot(self.theme)
        self.lengths = LengthsPlot(self.theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.told.theme = theme
        self.told.update()
        self.row.set_theme(theme)
        style_axis(self.input_axis, theme, "input that is replaced")
        style_axis(self.bars.getAxis("left"), theme, "change")
        self.items.setOpts(brush=theme.series[0], pen=None)
        for number, line in enumerate(self.lines):
            line.setPen(pg.mkPen(theme.series[number], width=WIDTHS[number]))
        self.learned.setPen(pg.mkPen(theme.series[2], width=1.8))
        self.rate_now.setPen(pg.mkPen(theme.series[2], width=1.8, style=Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)
        self.lags.set_theme(theme)
        self.lengths.set_theme(theme)
        super().set_theme(theme)

    def update_contents(self) -> None:
        """Everything of the frame that is shown."""
        assert self.capture is not None
        self.found = sorted(found(self.capture, self.frame), key=lambda one: WORST.index(one.word))
        self.told.set_text(
            "\n".join(f"{MARKS[one.word]}  {one.test.replace('_', ' ')}: {one.sentence}" for one in self.found)
        )
        by_module = {c.signal.removeprefix("structure/").removesuffix("/modules"): c for c in self.of(BY_MODULE)}
        set_options(self.which, list(by_module))
        for widget in self._of_which:
            widget.setVisible(bool(by_module))
        self._draw_map(next(iter(self.of(MAP)), None))
        self._draw_modules(by_module.get(self.which.currentText()))
        self._draw_rates(self.of(BY_RATE))
        self._draw_batch(next(iter(self.of(BY_ITERATION)), None))
        by_lag = {c.signal: self.capture.array(c.name, self.frame) for c in self.of(BY_LAG) if c.signal in REACH}
        self.lags.show_rows(*map(by_lag.get, REACH))
        self._draw_lengths(next(iter(self.of(BY_LENGTH)), None))
        has = (self.of(MAP), by_module.get(self.which.currentText()), self.of(BY_RATE), self.of(BY_ITERATION))
        filled = (*has, len(by_lag) == 2, self.of(BY_LENGTH))
        self.there = [plot for plot, on in zip(self.plots, filled, strict=True) if on]
        self._make_room()

    def resizeEvent(self, event: Any) -> None:
        """Sentences take more lines, or fewer; they stand above the plots or beside them."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            self._make_room()

    def _arrange(self, drawn: list[Any]) -> None:
        """The sentences above the plots, in a wide panel at their left; the map first, in a room that suits it."""
        wide = is_wide(self.width(), self.height()) and bool(drawn)
        rows = [SHARE if item is self.cell else 2 for item in drawn]
        cells = {item: (at, 1, 1, 1) if wide else (at + 1, 0, 1, 1) for at, item in enumerate(drawn)}
        cells[self.told] = (0, 0, len(drawn), 1) if wide else (0, 0, 1, 1)
        columns = (1, 1) if wide else (1, 0)
        if self.arranged.place(cells, rows if wide else (0, *rows), columns):
            for column, share in enumerate(columns):
                self.figure.ci.layout.setColumnPreferredWidth(column, 100 * share)
            self.figure.ci.layout.setAlignment(self.told, Qt.AlignmentFlag.AlignTop)

    def _make_room(self) -> None:
        """The sentences leave every plot enough height to be read; what does not fit is scrolled."""
        shown = [self.row.plot, *self.below[1:]]
        self._arrange([item for item, plot in zip(self.below, shown, strict=True) if plot in self.there])
        text, wide = math.ceil(self.told.minimumHeight()), is_wide(self.width(), self.height())
        room = float(max(PLOT * SHARE // 2, self.height() - 2 * EDGE))
        self.cell.setMaximumHeight(room if wide else UNLIMITED)  # its axis is in sight, however much text there is
        self.figure.ci.layout.setAlignment(self.cell, Qt.AlignmentFlag.AlignTop)
        plots = sum(PLOT * (SHARE if plot is self.row.plot else 2) // 2 for plot in self.there)
        self.figure.setMinimumHeight(max(self.needs_height, text, plots) if wide else text + plots)

    def of(self, dims: tuple[str, ...]) -> list[Channel]:
        """The channels over some dims."""
        return [channel for channel in self.channels() if channel.dims == dims]

    def _draw_map(self, channel: Channel | None) -> None:
        for item in (self.row.plot, self.row.bar):
            item.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = self.capture.array(channel.name, self.frame)
        self.replaced = np.flatnonzero(~np.isnan(values).all(axis=1))
        rows = values[self.replaced]
        levels = floored(rows, channel.scale, channel.limits, least=LEAST, masked=bool(np.isnan(rows).any()))
        shown = np.where(np.isnan(rows), -np.inf, np.maximum(rows, 10.0**levels.low if levels.log else 0.0))
        whole = len(rows) == len(values)
        gaps = gaps_of(self.capture, channel.name, self.frame, x=1, y=0) if whole else NONE
        self.row.show_array(shown.T, levels, channel.unit, gaps=gaps)
        self.row.plot.set_shape(values.shape[1], values.shape[0])  # also where only some inputs have a row
        below = "below the diagonal: read too early" if whole else f"{len(rows)} of {len(values)} inputs were replaced"
        self.row.plot.set_title("change of each output when an input is replaced", below)
        names = self.capture.labels(channel.domain("step"), self.frame)
        named = len(names) == values.shape[1]
        self.row.plot.step_axis.set_names(names if named else ())
        self.input_axis.stands_for = None if whole else self.replaced.tolist()
        self.input_axis.set_names([names[n] if named and whole else str(n) for n in self.replaced])

    def _draw_modules(self, channel: Channel | None) -> None:
        self.bars.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = self.capture.array(channel.name, self.frame)
        with np.errstate(divide="ignore", invalid="ignore"):
            heights = np.log10(values) - LEAST
        drawn = np.flatnonzero(np.isfinite(heights) & (heights > 0))
        self.items.setOpts(x=drawn, height=heights[drawn], y0=LEAST)
        self.bars.vb.setYRange(LEAST, max(0.0, float(np.nanmax(heights[drawn], initial=0.0)) + LEAST), padding=0.02)
        self.bars.vb.setXRange(-0.7, max(len(values), 1) - 0.3, padding=0)
        self.bars.step_axis.set_names(self.modules(channel))
        self.bars.set_title(channel.title)

    def _draw_rates(self, channels: list[Channel]) -> None:
        self.rates.setVisible(bool(channels))
        for line in self.lines:
            line.setData([], [])
        for channel in channels:
            assert self.capture is not None
            rate, loss = rows_of(channel, self.capture.array(channel.name, self.frame), "learning rate", "loss")
            known = np.isfinite(loss) & (rate > 0)
            number = list(DIRECTIONS).index(channel.signal.rpartition("/")[2])
            self.lines[number].setData(np.log10(rate[known]), loss[known])
        self._draw_own([one for one in channels if one.signal.endswith("/own")])
        if channels:
            self.rates.set_title("loss of this batch after one step, by learning rate")
            self.rates.vb.autoRange(padding=0.02)

    def _draw_own(self, own: list[Channel]) -> None:
        """The training's own optimizer, where there is one: its name in the legend, and where its rate is."""
        assert self.capture is not None
        self.legend.removeItem(self.lines[-1])
        if own:
            self.legend.addItem(self.lines[-1], DIRECTIONS["own"])
        rates = [scalar_of(self.capture, "trial/learning_rate/rate", one.name, self.frame) for one in own]
        self.rate_now.setVisible(bool(rates) and rates[0] > 0)
        if self.rate_now.isVisible():
            self.rate_now.setValue(math.log10(rates[0]))

    def _draw_batch(self, channel: Channel | None) -> None:
        self.batch.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = self.capture.array(channel.name, self.frame)
        self.learned.setData(np.arange(len(values)), values)
        self.batch.set_title(channel.title, channel.method)
        self.batch.label_left("loss" if channel.unit in ("", "1") else f"loss ({channel.unit})")
        self.batch.vb.setXRange(0, max(1, len(values) - 1), padding=0.01)
        top = float(np.nanmax(values[np.isfinite(values)], initial=0.0))
        self.batch.vb.setYRange(0, top or 1.0, padding=0.02)

    def _draw_lengths(self, channel: Channel | None) -> None:
        if channel is None or self.capture is None:
            self.lengths.show_table(None, np.nan)
            return
        own = scalar_of(self.capture, OWN, channel.name, self.frame)
        self.lengths.show_table(self.capture.array(channel.name, self.frame), own)

    def modules(self, channel: Channel) -> tuple[str, ...]:
        """Names of the modules, in the order of the channel."""
        assert self.capture is not None
        return self.capture.labels(channel.domain("module"), self.frame)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to a step of the map; a module is marked."""
        if plot is self.lengths:
            return  # four points, of which the sentence tells
        if plot is not self.row.plot:
            self.marked.set(plot, max(0, round(x)))
        else:
            row = min(max(round(y), 0), max(len(self.replaced) - 1, 0))
            self.looking.move(step=round(x), key=int(self.replaced[row]) if len(self.replaced) else None)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The change at the cursor, and of the module that is marked."""
        if self.state != "figure" or self.capture is None:
            return []
        rows = []
        for channel in self.of(MAP):
            step, source = position.step, position.key
            inside = self.capture.extent(channel.name, self.frame)
            if step is not None and source is not None and source < inside[0] and step < inside[1]:
                value = exact_at(self.capture, channel.name, self.frame, source, step)
                told = "not replaced" if math.isnan(float(value)) else measured(value, channel.unit)
                rows.append((f"output [{step}], input [{source}] replaced", told))
        for channel in self.of(BY_MODULE):
            names = self.modules(channel)
            at = self.marked.at(self.bars, self.capture.extent(channel.name, self.frame)[0])
            if at is not None and channel.signal == f"structure/{self.which.currentText()}/modules":
                value = exact_at(self.capture, channel.name, self.frame, at)
                name = names[at] if at < len(names) else f"module {at}"
                rows.append((f"change in {name}", measured(value, channel.unit)))
        for channel in self.of(BY_ITERATION):
            at = self.marked.at(self.batch, self.capture.extent(channel.name, self.frame)[0])
            if at is not None:
                value = exact_at(self.capture, channel.name, self.frame, at)
                rows.append((f"loss at step {at} of one batch", measured(value, channel.unit)))
        for channel in self.of(BY_LAG):
            at = self.marked.at(self.lags, self.capture.extent(channel.name, self.frame)[1])
            if at is not None:
                value = exact_at(self.capture, channel.name, self.frame, 0, at)
                rows.append((f"{channel.title.partition(',')[0]}, lag {at}", measured(value, channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """The numbers of every test."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}
