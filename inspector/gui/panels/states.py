"""States: every unit at every step, in a chosen order, with the trace of the unit under the cursor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QTimer

from inspector.gui.panel.base import Panel, caption, chooser, measured, set_options
from inspector.gui.panel.cells_of_map import CELLS, CELLS_TIP, DENSITY, show_cells
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.long_traces import LongTraces
from inspector.gui.panel.registry import PANELS
from inspector.gui.panel.saturated import BEYOND, OF_STATES, SaturatedMarks
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import MOST, cells_of, pins_of
from inspector.gui.widgets.centred import DIFFERENCE, is_centred
from inspector.gui.widgets.charts.banded_lines import CROWD, BandedLines
from inspector.gui.widgets.gaps import Gaps, gaps_of
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.density import BINS, density_overview, ticks
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.maps.pin_cells import PinCells
from inspector.gui.widgets.ordering import ORDERS, order_units
from inspector.gui.widgets.plots.source import GLANCE, glance
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]


@PANELS.register("states")
class States(Panel):
    """Any (step, unit) channel of kind "state"."""

    tab_order, tab_row = 10, "upper"
    menu_group = "inside"
    key, title = "states", "States"
    of_recurrences = True
    hint = "Hidden and cell states of recurrent layers, unit by step. Run a model with a recurrent layer to see them."
    shows = ("states", "scans")
    needs_height = 240

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """States over steps and units."""
        return channel.kind == "state" and channel.dims == ("step", "unit")

    def concerns(self, name: str) -> bool:
        """Hidden or cell states that could not be computed."""
        return name.rpartition(":")[2] in ("h", "c")

    def build(self) -> None:
        """A map above the trace of one unit."""
        self.which, self.order = chooser([], "Which state"), chooser(list(ORDERS), "Order of units")
        self.cells = chooser(list(CELLS), CELLS_TIP)
        for widget in (
            caption("State"), self.which, caption("Units"), self.order, caption("Cells"), self.cells,
        ):  # fmt: skip
            self.controls.addWidget(widget)
        self.saturated = SaturatedMarks(self, OF_STATES, self.redraw)
        self.controls.addWidget(self.saturated.switch)
        self.cells.currentTextChanged.connect(self.redraw)
        self.which.currentTextChanged.connect(self._chosen)
        self.order.currentTextChanged.connect(self.redraw)
        self.row = MapRow(self.figure, 0, self.steps, self.theme, label="unit")
        self.trace = StepPlot(self.steps, self.theme, label="value")
        self.figure.addItem(self.trace, row=1, col=0)
        self.figure.ci.layout.setRowStretchFactor(0, 3)
        self.figure.ci.layout.setRowStretchFactor(1, 1)
        self.banded = BandedLines(self.trace, self.theme, 1 + MOST, self._traces_again)
        self.lines, self.edges, self.legend = self.banded.lines, self.banded.edges, self.banded.legend
        self.line = self.lines[0]
        """Of the unit under the cursor; the others are of pinned units."""
        self.traces = LongTraces(self)
        self.traces.more.connect(self._read_more)
        self._traced: list[tuple[int, Array]] = []
        """(unit, its values) of what is drawn."""
        pins_of(self.looking).changed.connect(self.draw_if_seen)
        self.steps.changed.connect(self._in_view)
        self.zero = pg.InfiniteLine(0, angle=0, pen=pg.mkPen(self.theme.grid))
        self.trace.addItem(self.zero, ignoreBounds=True)
        self.plots = [self.row.plot, self.trace]
        self.pin_cells = PinCells(self.row.plot)
        self._told = ("", "", 0)
        """(title of the map, what its cells show, steps)."""
        again = QTimer(self, interval=0, singleShot=True)
        again.timeout.connect(self._resized)
        self.row.plot.vb.sigResized.connect(lambda _: again.start())
        self._order: npt.NDArray[np.intp] | None = None
        self._order_key: Any = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.banded.set_theme(theme)
        self.zero.setPen(pg.mkPen(theme.grid))
        super().set_theme(theme)

    def _chosen(self, name: str) -> None:
        if ":" in name and name.rpartition(":")[0] != self.looking.position.place:
            self.looking.move(place=name.rpartition(":")[0])
        self.redraw()

    def chosen(self) -> Channel | None:
        """The channel that is shown."""
        found = {channel.name: channel for channel in self.channels()}
        return found.get(self.which.currentText())

    def update_contents(self) -> None:
        """Map and trace of the chosen channel."""
        set_options(self.which, [channel.name for channel in self.channels()])
        channel = self.chosen()
        assert channel is not None and self.capture is not None
        steps = self.capture.extent(channel.name, self.frame)[0]
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        self.saturated.offer([] if self.as_density else [channel])
        if self.as_density:
            self._draw_density(channel, levels)
        else:
            how, bounds = self.cells.currentText(), self.saturated.drawn(channel)
            cells = show_cells(self.row, self.capture, channel, self.frame, how, nan, infinite, bounds)
            self.row.set_order(self._ordering(channel))
            more = self._beyond_rounding(channel) + self.saturated.in_title(channel, BEYOND)
            told = f"{channel.title}, {channel.place}{more}"
            self._told = (told, cells, steps)
            self._entitle()
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names())
        self._draw_trace(channel)

    def _entitle(self) -> None:
        """What the map is, and what its cells are where there are fewer of them than steps in view."""
        told, cells, steps = self._told
        low, high = self.steps.bounds
        pixels = self.row.plot.vb.width() * self.devicePixelRatioF()
        self.row.plot.set_title(told + (cells if min(steps, high - low) > pixels else ""))

    def _resized(self) -> None:
        """More or fewer steps share a pixel."""
        if self.state == "figure" and self._traced and not self.over.on:
            if not self.as_density:
                self._entitle()
            self._show_traces()

    @property
    def as_density(self) -> bool:
        """Whether the map is of the numbers of all units rather than of each unit."""
        return self.cells.currentText() == DENSITY

    def _draw_density(self, channel: Channel, levels: Levels) -> None:
        assert self.capture is not None
        steps, units = self.capture.extent(channel.name, self.frame)
        look = density_overview(self.capture, channel.name, self.frame, levels.low, levels.high)
        gaps = gaps_of(self.capture, channel.name, self.frame, y=None)
        gaps = Gaps(*(tuple((cut, (0, BINS)) for cut, _ in rects) for rects in (gaps.missing, gaps.damaged)))
        most = float(np.nanmax(look((0, steps), GLANCE)[0], initial=0.0)) or 1.0
        self.row.set_order(None)
        self.row.show(
            look, steps, BINS, Levels(0.0, most, root=True), "1",
            self.capture.revision(channel.name, self.frame), gaps=gaps,
        )  # fmt: skip
        self.row.plot.label_left("value")
        self.row.plot.getAxis("left").setTicks([ticks(levels.low, levels.high)])
        shares = f"share of {units:,} units at each value{self.saturated.in_title(channel, BEYOND)}"
        self.row.plot.set_title(f"{channel.title}, {channel.place}: {shares}")

    def _beyond_rounding(self, channel: Channel) -> str:
        """The end of the title of a difference in which nothing is left but rounding."""
        assert self.capture is not None
        if not self.differs:
            return ""
        low, high = self.capture.overview(channel.name, self.frame, size=(1, 1))
        told = ": no difference beyond rounding" if self.source.edited else ": no difference"
        return told if not low.any() and not high.any() else ""

    def _ordering(self, channel: Channel) -> npt.NDArray[np.intp] | None:
        assert self.capture is not None
        how = self.order.currentText()
        key = (channel.name, self.frame, self.capture.revision(channel.name, self.frame), how)
        if key != self._order_key:
            low, high = self.capture.overview(
                channel.name, self.frame, size=(1000, self.capture.extent(channel.name, self.frame)[1])
            )
            self._order_key, self._order = key, order_units((low + high) / 2, how)
        return self._order

    def unit_at(self, row: int) -> int:
        """The unit drawn in a row."""
        return int(self._order[row]) if self._order is not None and row < len(self._order) else row

    def row_of(self, unit: int) -> int:
        """The row in which a unit is drawn."""
        return int(np.flatnonzero(self._order == unit)[0]) if self._order is not None else unit

    def _draw_trace(self, channel: Channel) -> None:
        assert self.capture is not None
        unit = self.looking.position.unit
        units = self.capture.extent(channel.name, self.frame)[1]
        unit = min(unit if unit is not None else self.unit_at(0), units - 1)
        pinned = [pin.position for pin in pins_of(self.looking).all if pin.position.place in ("", channel.place)]
        others = [at.unit for at in pinned if at.unit is not None and at.unit < units and at.unit != unit]
        drawn = list(dict.fromkeys((unit, *others)))[: self.banded.most]
        self._traced = [(one, self._values_of(channel, one)) for one in drawn]
        self._show_traces()
        values = np.concatenate([values for _, values in self._traced])
        self.trace.label_left(DIFFERENCE if self.differs else "value")
        self.trace.fit_left(values, centred=is_centred([channel]) and self.differs)
        self.trace.mark_gaps(gaps_of(self.capture, channel.name, self.frame, y=None, at={1: unit}))
        marked = self.looking.position.unit is not None and not self.as_density
        self.row.show_row(self.row_of(unit) if marked else None)

    def _values_of(self, channel: Channel, unit: int) -> Array:
        """(steps,) of one unit, NaN where nothing is known; more of a long one comes while it is read."""
        assert self.capture is not None
        return self.traces.values(self.capture, channel, self.frame, unit)

    def _read_more(self) -> None:
        """More of a long unit is there."""
        channel = self.chosen() if self.state == "figure" and not self.over.on else None
        if channel is not None and self.in_sight():
            self._draw_trace(channel)

    def complete(self) -> None:
        """Wait for everything that is being read: a figure in a file shows the whole."""
        self.traces.complete()
        self.redraw()

    def reset(self) -> None:
        """Another capture."""
        self.traces.forget()

    def _show_traces(self) -> None:
        """The part in view of the unit under the cursor, and of pinned units; mean and extremes where it is crowded."""
        self.banded.show([(f"unit {unit}", values) for unit, values in self._traced], self.steps.bounds)
        units = ", ".join(str(unit) for unit, _ in self._traced)
        many = len(self._traced) > 1
        self.trace.set_title(f"{'units' if many else 'unit'} {units}{CROWD if self.banded.dense else ''}")

    def _traces_again(self) -> None:
        self._in_view(*self.steps.bounds)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self._traced and not self.over.on and self.in_sight():
            if not self.as_density:
                self._entitle()
            self._show_traces()

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its state; another unit its trace."""
        if new.place != old.place and new.place:
            part = self.which.currentText().rpartition(":")[2]
            for wanted in (f"{new.place}:{part}", f"{new.place}:h"):
                if self.which.currentText() == wanted:
                    break
                if self.which.findText(wanted) >= 0:
                    self.which.setCurrentText(wanted)
                    return
        channel = self.chosen()
        if channel is not None and new.unit != old.unit:
            self._draw_trace(channel)

    def show_pin_cells(self) -> None:
        """The pinned units of the state that is drawn, at their steps."""
        channel, at = self.chosen(), pins_of(self.looking).all
        if channel is None or self.capture is None or self.state != "figure":
            return
        steps, units = self.capture.extent(channel.name, self.frame)
        found = [] if self.as_density else cells_of(at, self.looking.axis, channel.place, steps, units)
        self.pin_cells.show([(x, self.row_of(unit), number) for x, unit, number in found], self.theme)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and, over the map, the unit under the mouse."""
        changes: dict[str, Any] = {"step": round(x)}
        channel = self.chosen()
        if channel is not None:
            changes["place"] = channel.place
            assert self.capture is not None
            if (
                plot is self.row.plot
                and not self.as_density
                and 0 <= round(y) < self.capture.extent(channel.name, self.frame)[1]
            ):
                changes["unit"] = self.unit_at(round(y))
        self.looking.move(**changes)

    def clampable(self, plot: Any) -> Channel | None:
        """The state whose map it is."""
        return self.chosen() if plot is self.row.plot and not self.as_density else None

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The value at step and unit, of every state of the place."""
        rows = []
        for channel in self.channels():
            at = (position.step, position.unit)
            if channel.place != (position.place or channel.place) or None in at or self.capture is None:
                continue
            extent = self.capture.extent(channel.name, self.frame)
            step, unit = position.step or 0, position.unit or 0
            if step < extent[0] and unit < extent[1]:
                cell = exact_at(self.capture, channel.name, self.frame, step, unit)
                what = f"{self.changed(channel)}{channel.signal}[{step}, {unit}]  {channel.place}"
                rows.append((what, measured(cell, channel.unit)))
                if many := self.saturated.at_step(channel, step):
                    rows.append((f"{channel.signal} saturated [{step}]  {channel.place}", many))
        return rows

    def data(self) -> dict[str, Array]:
        """The chosen state, whole."""
        channel = self.chosen()
        return {} if channel is None or self.capture is None else {
            channel.name: self.capture.array(channel.name, self.frame)
        }  # fmt: skip
