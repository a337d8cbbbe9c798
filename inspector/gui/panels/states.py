"""States: every unit at every step, in a chosen order, with the trace of the unit under the cursor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.panel.base import Panel, caption, chooser, measured, set_options
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import MOST, pins_of
from inspector.gui.widgets.bands import bands, crowded
from inspector.gui.widgets.centred import DIFFERENCE, is_centred
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.legend import Legend
from inspector.gui.widgets.maprow import MapRow
from inspector.gui.widgets.ordering import ORDERS, order_units
from inspector.gui.widgets.source import changes_of, drawable, glance, overview_of
from inspector.gui.widgets.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]


@PANELS.register("states")
class States(Panel):
    """Any (step, unit) channel of kind "state"."""

    tab_order, tab_row = 10, "upper"
    key, title = "states", "States"
    of_recurrences = True
    hint = "Hidden and cell states of recurrent layers, unit by step. Run a model with a recurrent layer to see them."
    shows = ("states", "scans")
    needs_height = 260

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
        for widget in (caption("State"), self.which, caption("Units"), self.order):
            self.controls.addWidget(widget)
        self.which.currentTextChanged.connect(self._chosen)
        self.order.currentTextChanged.connect(self.redraw)
        self.row = MapRow(self.figure, 0, self.steps, self.theme, label="unit")
        self.trace = StepPlot(self.steps, self.theme, label="value")
        self.figure.addItem(self.trace, row=1, col=0)
        self.figure.ci.layout.setRowStretchFactor(0, 3)
        self.figure.ci.layout.setRowStretchFactor(1, 1)
        self.lines = [curve(self.theme, n) for n in range(1 + MOST)]
        self.line = self.lines[0]
        """Of the unit under the cursor; the others are of pinned units."""
        self.edges = [(curve(self.theme, n, width=0.6), curve(self.theme, n, width=0.6)) for n in range(1 + MOST)]
        for one in (*(edge for pair in self.edges for edge in pair), *self.lines):
            self.trace.addItem(one)
        self.legend = Legend(self.trace)
        self._traced: list[tuple[int, Array]] = []
        """(unit, its values) of what is drawn."""
        pins_of(self.looking).changed.connect(self.draw_if_seen)
        self.steps.changed.connect(self._in_view)
        self.trace.addItem(pg.InfiniteLine(0, angle=0, pen=pg.mkPen(self.theme.grid)), ignoreBounds=True)
        self.plots = [self.row.plot, self.trace]
        self._order: npt.NDArray[np.intp] | None = None
        self._order_key: Any = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.legend.set_theme(theme)
        for n, line in enumerate(self.lines):
            colour = theme.series[n % len(theme.series)]
            line.setPen(pg.mkPen(colour, width=1.4))
            for edge in self.edges[n]:
                edge.setPen(pg.mkPen(colour + "70", width=0.6))
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
        steps, units = self.capture.extent(channel.name, self.frame)
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        self.row.show(
            overview_of(self.capture, channel.name, self.frame), steps, units, levels, channel.unit,
            self.capture.revision(channel.name, self.frame), nan=nan, infinite=infinite,
            gaps=gaps_of(self.capture, channel.name, self.frame),
            changes=changes_of(self.capture, channel.name, self.frame),
        )  # fmt: skip
        self.row.set_order(self._ordering(channel))
        self.row.plot.set_title(f"{channel.title}, {channel.place}{self._beyond_rounding(channel)}")
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names())
        self._draw_trace(channel)

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
        drawn = list(dict.fromkeys((unit, *others)))[: len(self.lines)]
        self._traced = [(one, self._values_of(channel, one)) for one in drawn]
        self._show_traces()
        values = np.concatenate([values for _, values in self._traced])
        self.trace.label_left(DIFFERENCE if self.differs else "value")
        self.trace.fit_left(values, centred=is_centred([channel]) and self.differs)
        self.trace.mark_gaps(gaps_of(self.capture, channel.name, self.frame, y=None, at={1: unit}))
        self.row.show_row(self.row_of(unit) if self.looking.position.unit is not None else None)

    def _values_of(self, channel: Channel, unit: int) -> Array:
        """(steps,) of one unit, NaN where nothing is known."""
        assert self.capture is not None
        cut = (slice(None), slice(unit, unit + 1))
        return drawable(self.capture.block(channel.name, self.frame, cut)).reshape(-1)

    def _show_traces(self) -> None:
        """The part in view of the unit under the cursor, and of pinned units; mean and extremes where it is crowded."""
        low, high = self.steps.bounds
        pixels, many = self.trace.vb.width(), len(self._traced) > 1
        dense = crowded(min(high - low, len(self._traced[0][1])), pixels)
        self.legend.clear()
        for n, line in enumerate(self.lines):
            edges = self.edges[n]
            if n >= len(self._traced):
                for one in (line, *edges):
                    one.setData([], [])
                continue
            unit, values = self._traced[n]
            first, stop = max(0, int(low)), min(len(values), int(high) + 2)
            cells = max(1, int(pixels / 2)) if dense else max(1, stop - first)
            x, least, mean, largest = bands(values[first:stop], first, cells)
            line.setData(x, mean)
            for edge, extreme in zip(edges, (least, largest), strict=True):
                edge.setData(*((x, extreme) if dense else ([], [])))
            if many:
                self.legend.addItem(line, f"unit {unit}", *edges)
        how = ", mean and extremes of the steps of two pixels" if dense else ""
        units = ", ".join(str(unit) for unit, _ in self._traced)
        self.trace.set_title(f"{'units' if many else 'unit'} {units}{how}")

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self._traced and not self.over.on:
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

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and, over the map, the unit under the mouse."""
        changes: dict[str, Any] = {"step": round(x)}
        channel = self.chosen()
        if channel is not None:
            changes["place"] = channel.place
            assert self.capture is not None
            if plot is self.row.plot and 0 <= round(y) < self.capture.extent(channel.name, self.frame)[1]:
                changes["unit"] = self.unit_at(round(y))
        self.looking.move(**changes)

    def clampable(self, plot: Any) -> Channel | None:
        """The state whose map it is."""
        return self.chosen() if plot is self.row.plot else None

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
        return rows

    def data(self) -> dict[str, Array]:
        """The chosen state, whole."""
        channel = self.chosen()
        return {} if channel is None or self.capture is None else {
            channel.name: self.capture.array(channel.name, self.frame)
        }  # fmt: skip
