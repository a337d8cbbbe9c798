"""Gates: one heatmap for each gate on a shared step axis, and how saturated each unit of each gate is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.saturation import GATE_HIGH, GATE_LOW, bounds_of
from inspector.gui.panel.arranged import Arranged, Cell, is_wide
from inspector.gui.panel.base import Panel, caption, chooser, measured, number, set_options
from inspector.gui.panel.cells_of_map import CELLS_TIP, EXTREMES, MEAN, show_cells
from inspector.gui.panel.exact import exact_at, why_not_known
from inspector.gui.panel.labelled import rows_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.panel.saturated import OF_GATES, SaturatedMarks
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import cells_of, pins_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.maps.pin_cells import PinCells
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plots.axes import ValueAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import glance
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
SATURATION = ("left", "right", "graded")
MOST_ROWS = 6
SCATTER, LEAST_HEIGHT = 220, 220
APART = 10
"""Pixels between what is said below a colour bar and the scatter."""
NARROW = SCATTER + 230
"""Pixels of width below which a map has too little room beside the scatter."""
BESIDE = SCATTER + 2 * 250
"""Pixels of width from which two columns of maps, each with its axis and colour bar, can be read."""
"""Pixels of width that the scatter needs, and of height where maps stand beside each other."""
LEAST_MAP, AXIS, LEAST_SCATTER = 42, 36, 150
"""Pixels of height that a map with its title needs, its axis, and the scatter, in a figure that cannot scroll."""
NEAR = 9.0
"""Pixels from a dot's middle within which the mouse is on it; dots have a radius of 3."""


@PANELS.register("gates")
class Gates(Panel):
    """Every (step, unit) channel of kind "gate" of one place, with their (statistic, unit) saturation."""

    tab_order, tab_row = 30, "upper"
    menu_group = "inside"
    key, title = "gates", "Gates"
    of_recurrences = True
    hint = "Gates and candidates of gated layers (LSTM, GRU), unit by step, and their saturation."
    shows = ("gates",)
    needs_height = 300

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Gates over steps and units."""
        return channel.kind == "gate" and channel.dims == ("step", "unit")

    def concerns(self, name: str) -> bool:
        """Gates that could not be computed."""
        return ":gate" in name or name.endswith(":candidate")

    def build(self) -> None:
        """A column of maps, made when the number of gates is known; the scatter on the right."""
        self.where = chooser([], "Place in the model")
        self.controls.addWidget(caption("Layer"))
        self.controls.addWidget(self.where)
        self.where.currentTextChanged.connect(self._chosen)
        self.cells = chooser([MEAN, EXTREMES], CELLS_TIP)
        self.controls.addWidget(caption("Cells"))
        self.controls.addWidget(self.cells)
        self.cells.currentTextChanged.connect(self.redraw)
        self.saturated = SaturatedMarks(self, OF_GATES, self.redraw)
        self.controls.addWidget(self.saturated.switch)
        self.rows: list[MapRow] = []
        self.pin_cells: dict[Any, PinCells] = {}
        self.arranged: Arranged | None = None
        axes = {s: ValueAxis(s) for s in ("left", "bottom")}
        self.scatter = TitledPlot(viewBox=View(both=True), axisItems=axes)
        self.scatter.setXRange(0, 1, padding=0.04)
        self.scatter.setYRange(0, 1, padding=0.04)
        self.scatter.setAspectLocked(False)
        self.scatter.setContentsMargins(APART, 0, 0, 0)
        self.bounds: list[tuple[float, float]] = [(GATE_LOW, GATE_HIGH)]
        """Beyond which values count, of what has dots: of gates first."""
        self.dots: list[pg.ScatterPlotItem] = []
        self.moves: list[pg.PlotDataItem] = []
        self.edge = pg.PlotDataItem([0, 1], [1, 0])
        self.scatter.addItem(self.edge)
        self.key_lines = Legend(self.scatter)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._label_axes(theme)
        self.scatter.vb.setBackgroundColor(theme.base)
        self.edge.setPen(pg.mkPen(theme.grid))
        self.key_lines.set_theme(theme)
        for row in self.rows:
            row.set_theme(theme)
        super().set_theme(theme)

    def _label_axes(self, theme: Theme) -> None:
        """What was counted: of gates, and of what is a tanh where that has dots too."""
        for n, (axis, side, sign) in enumerate((("left", "left", "<"), ("bottom", "right", ">"))):
            limits = [f"{'' if pair[0] == GATE_LOW else 'tanh '}{sign} {pair[n]:g}" for pair in self.bounds]
            saturated = f" ({side}-saturated)" * (len(limits) == 1)  # with both there is no room for the words
            style_axis(self.scatter.getAxis(axis), theme, f"share {', '.join(limits)}{saturated}".replace(" -", " −"))

    def _chosen(self, place: str) -> None:
        self.looking.move(place=place)
        self.redraw()

    def shown(self) -> list[Channel]:
        """The gates of the chosen place."""
        return [channel for channel in self.channels() if channel.place == self.where.currentText()]

    def update_contents(self) -> None:
        """One map a gate, and the scatter."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        gates = self.shown()[:MOST_ROWS]
        self._make_rows(len(gates))
        assert self.capture is not None
        self.saturated.offer(gates)
        names, how = self.step_names(), self.cells.currentText()
        for row, channel in zip(self.rows, gates, strict=True):
            _, nan, infinite = glance(self.capture, channel, self.frame)
            bounds = self.saturated.drawn(channel)
            show_cells(row, self.capture, channel, self.frame, how, nan, infinite, bounds)
            row.plot.set_title(f"{channel.title}{self.saturated.in_title(channel)}")
            row.plot.step_axis.set_names(names)
        self._draw_scatter(gates)

    def _make_rows(self, count: int) -> None:
        if count == len(self.rows):
            return
        self.pin_cells.clear()
        for row in self.rows:
            row.plot.release()
            self.figure.removeItem(row.plot)
            self.figure.removeItem(row.bar)
        if self.scatter in self.figure.ci.items:
            self.figure.removeItem(self.scatter)
        self.rows = [MapRow(self.figure, i, self.steps, self.theme, label="unit") for i in range(count)]
        self.plots = [row.plot for row in self.rows]
        items = [item for row in self.rows for item in (row.plot, row.bar)]
        self.arranged = Arranged(self.figure, [*items, self.scatter])
        self._arrange()

    def _arrange(self) -> None:
        """A column of maps, in a wide panel two; the scatter at the right, in a narrow panel below them."""
        beside = self.width() >= BESIDE and is_wide(self.width(), self.height())
        columns = 2 if len(self.rows) > 1 and beside else 1
        high = -(-len(self.rows) // columns)
        narrow = self.width() < NARROW
        cells: dict[Any, Cell] = {self.scatter: (high, 0, 1, 2) if narrow else (0, 2 * columns, max(1, high), 1)}
        for at, row in enumerate(self.rows):
            line, column = at % high, at // high
            cells |= {row.plot: (line, 2 * column, 1, 1), row.bar: (line, 2 * column + 1, 1, 1)}
            last = line == high - 1 or at == len(self.rows) - 1
            row.plot.getAxis("bottom").setStyle(showValues=last)
            row.plot.getAxis("bottom").showLabel(last)
            row.plot.setMinimumHeight(LEAST_MAP + AXIS * last)
        left_out = self.figure.fixed and narrow and self.height() < LEAST_MAP * high + AXIS + LEAST_SCATTER
        if left_out:
            del cells[self.scatter]
        self.figure.left_out = ("the saturation of units",) if left_out else ()
        rows = [1] * high + [2] * (narrow and not left_out)
        if self.arranged is not None and self.arranged.place(cells, rows, [*([3, 0] * columns), 0]):
            needed = self.needs_height + SCATTER * narrow
            least = LEAST_HEIGHT if columns > 1 else needed
            self.figure.setMinimumHeight(1 if self.figure.fixed else least)
        square = min(self.height(), self.width() // 4)  # both of its axes are shares from 0 to 1
        for column in (2, 4):
            here = column == 2 * columns and not narrow
            self.figure.ci.layout.setColumnMinimumWidth(column, max(SCATTER, square) if here else 0)

    def resizeEvent(self, event: Any) -> None:
        """Another form of the panel: another layout."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            self._arrange()

    def saturation(self, channel: Channel) -> Array | None:
        """Saturation of a gate, whole, or None."""
        name = f"{channel.name}/saturation"
        if self.capture is None or name not in self.capture.channels or not self.capture.revision(name, self.frame):
            return None
        return self.capture.array(name, self.frame)

    def shares(self, channel: Channel, saturation: Array) -> Array:
        """(3, unit) shares of steps at which a unit is left-saturated, right-saturated and neither."""
        assert self.capture is not None
        return np.stack(rows_of(self.capture.channels[f"{channel.name}/saturation"], saturation, *SATURATION))

    def before_and_after(self, channel: Channel) -> tuple[Array | None, Array | None]:
        """(3, unit) saturation of a gate in the original run and in the one that is shown; the first of two runs only.

        Shares of two runs are drawn side by side and never subtracted: the question is where a unit's dot moved.
        """
        if not self.differs:
            found = self.saturation(channel)
            return None, None if found is None else self.shares(channel, found)
        name, both = f"{channel.name}/saturation", self.source
        if name not in both.channels:
            return None, None
        before, after = (self.shares(channel, both.capture.array(name, frame)) for frame in (both.first, both.second))
        return before, after

    def _draw_scatter(self, gates: list[Channel]) -> None:
        for item in (*self.dots, *self.moves):
            self.scatter.removeItem(item)
        self.key_lines.clear()
        self.dots, self.moves, found = [], [], set[tuple[float, float]]()
        title = (
            ["saturation; line: from the original run"]
            if self.differs
            else ["saturation, a dot a unit", self.basis(gates)]
        )
        self.scatter.title_in(self.theme.text, *title)
        for index, channel in enumerate(gates):
            before, after = self.before_and_after(channel)
            if after is None:
                continue
            colour = self.theme.series[index % len(self.theme.series)]
            moves = [] if before is None else [self._draw_moves(before, after, colour)]
            there = np.isfinite(after[:2]).all(0)
            dots = pg.ScatterPlotItem(
                x=after[1, there], y=after[0, there], size=6, pen=None, brush=pg.mkBrush(colour + "b0")
            )
            self.scatter.addItem(dots)
            self.key_lines.addItem(dots, channel.title.removeprefix("Δ "), *moves)
            self.dots.append(dots)
            found.add(bounds_of(channel.signal))
        self.bounds = sorted(found, reverse=True) or [(GATE_LOW, GATE_HIGH)]
        self._label_axes(self.theme)

    def basis(self, gates: list[Channel]) -> str:
        """Of how many sequences and steps the shares are, below the title; "" where the capture does not say so."""
        known = self.capture.channels if self.capture is not None else {}
        methods = [known[f"{gate.name}/saturation"].method for gate in gates if f"{gate.name}/saturation" in known]
        rests = next((method.partition("; ")[2] for method in methods), "")
        return rests

    def _draw_moves(self, before: Array, after: Array, colour: str) -> pg.PlotDataItem:
        """A line from where each unit was, for those that moved."""
        moved = (before[:2] != after[:2]).any(0) & np.isfinite(before[:2] + after[:2]).all(0)
        x, y = (np.stack((before[row, moved], after[row, moved]), -1).reshape(-1) for row in (1, 0))
        line = pg.PlotDataItem(x, y, connect="pairs", pen=pg.mkPen(colour, width=1.2), antialias=True)
        self.scatter.addItem(line)
        self.moves.append(line)
        return line

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its gates; another unit is marked."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        for row in self.rows:
            row.show_row(new.unit)

    def show_pin_cells(self) -> None:
        """The pinned units of the layer, in the map of every gate."""
        if self.capture is None or self.state != "figure":
            return
        for row, channel in zip(self.rows, self.shown(), strict=False):
            steps, units = self.capture.extent(channel.name, self.frame)
            found = cells_of(pins_of(self.looking).all, self.looking.axis, channel.place, steps, units)
            self.pin_cells.setdefault(row.plot, PinCells(row.plot)).show(found, self.theme)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and unit under the mouse, over the scatter to the unit of a dot."""
        if plot is self.scatter:
            unit = self._dot_at(x, y)
            if unit is not None:
                self.looking.move(unit=unit, place=self.where.currentText())
        elif plot in self.plots:
            gates = self.shown()
            extent = self.capture.extent(gates[0].name, self.frame) if self.capture is not None and gates else (0, 0)
            unit = round(y) if 0 <= round(y) < extent[1] else None
            self.looking.move(step=round(x), unit=unit, place=self.where.currentText())

    def _dot_at(self, x: float, y: float) -> int | None:
        """The unit of the nearest dot, if it is under the mouse."""
        width, height = self.scatter.vb.viewPixelSize()
        found: tuple[float, int] | None = None
        for dots in self.dots:
            xs, ys = dots.getData()
            away = np.hypot((xs - x) / width, (ys - y) / height)
            if len(away) and np.isfinite(away).any() and (found is None or np.nanmin(away) < found[0]):
                found = float(np.nanmin(away)), int(np.nanargmin(away))
        return found[1] if found is not None and found[0] <= NEAR else None

    def clampable(self, plot: Any) -> Channel | None:
        """The gate whose map it is."""
        return self.shown()[self.plots.index(plot)] if plot in self.plots else None

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every gate at step and unit, how many units are saturated at the step, and the unit's saturation."""
        capture, rows = self.capture, list[tuple[str, str]]()
        for channel in self.shown() if capture is not None else []:
            assert capture is not None
            steps, units = capture.extent(channel.name, self.frame)
            step, unit = position.step, position.unit
            if unit is not None and unit >= units:
                continue
            if step is not None and step < steps:
                if unit is not None:
                    value = exact_at(capture, channel.name, self.frame, step, unit)
                    rows.append((f"{channel.title} [{step}, {unit}]", measured(value, channel.unit)))
                if many := self.saturated.at_step(channel, step):  # of all units: it needs none
                    rows.append((f"{channel.title} saturated [{step}]", many))
            rows += self._shares_of(channel, unit) if unit is not None else []
        return rows

    def _shares_of(self, channel: Channel, unit: int) -> list[tuple[str, str]]:
        """The saturation of one unit of a gate, in one run or in two."""
        shown = [shares for shares in self.before_and_after(channel) if shares is not None]
        texts = [self._shares_told(channel, shares[:, unit]) for shares in shown]
        what = f"{channel.title.removeprefix('Δ ')}: {' / '.join(SATURATION)} saturation"
        return [(what, " → ".join(texts))] if texts else []

    def _shares_told(self, channel: Channel, shares: Array) -> str:
        """The three shares of a unit, or one word where none of them is known."""
        assert self.capture is not None
        name = f"{channel.name}/saturation"
        lost = why_not_known(self.capture, name, self.frame) if np.isnan(shares).any() else ""
        return lost or " / ".join(short(share) if np.isfinite(share) else number(share) for share in shares)

    def data(self) -> dict[str, Array]:
        """All gates of the chosen place and their saturation."""
        found: dict[str, Array] = {}
        for channel in self.shown():
            assert self.capture is not None
            found[channel.name] = self.capture.array(channel.name, self.frame)
            shares = self.saturation(channel)
            if shares is not None:
                found[f"{channel.name}/saturation"] = np.asarray(shares)
        return found
