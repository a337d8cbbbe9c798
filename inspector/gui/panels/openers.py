"""Gate openers: which inputs open a gate, what a unit retains over a span, how long it remembers, and a summary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtWidgets import QSpinBox

from inspector.analysis.retention import LIMIT, largest_of, retention_over
from inspector.gui.panel.base import Panel, caption, chooser, set_options
from inspector.gui.panel.channel_choice import chosen, offer_channels
from inspector.gui.panel.gates_of_place import GatesOfPlace
from inspector.gui.panel.labelled import row_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.loghistogram import LogHistogram
from inspector.gui.widgets.charts.tokenbars import TokenBars
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.marks import Marks
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plots.source import glance, overview_of
from inspector.gui.widgets.tables.text_columns import TextColumns
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel, counted

Array = npt.NDArray[Any]
TALLEST = 1 << 24  # Qt's own limit
SMALL = (420, 300)
"""Pixels of width, and of height, from which timescales, and texts, have room in a figure that cannot scroll."""
MEAN, ONE = "all units", "one unit"
LONGEST_SPAN, FIRST_SPAN = 512, 10
LEAST = ("1", "3", "10", "30")
WHICH = "The mean of all units, or the unit under the cursor"
SEEN = "Tokens that occur at least so many times"
WANTED = {
    ("opener", ("token", "unit")), ("opener", ("feature", "unit")), ("opener", ("token",)),
    ("memory", ("step", "unit")), ("memory", ("statistic", "unit")), ("gate", ("step", "unit")),
    ("unit", ("unit",)), ("unit", ("statistic", "unit")),
}  # fmt: skip


@PANELS.register("openers")
class Openers(Panel):
    """Tables (token, unit) and (feature, unit) of kind "opener", gates, memory runs and timescales of one place."""

    tab_order, tab_row = 40, "upper"
    menu_group = "inside"
    key, title = "openers", "Openers"
    of_recurrences = True
    hint = (
        "Which inputs open each gate, what a unit retains over a span of steps, its memory timescale, and runs of "
        "long-term memory. Needs a gated layer (LSTM, GRU, or gates of your own)."
    )
    shows = ("gates", "saturation", "timescale", "memory", "openers")
    needs_height = 390

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Openers, memory, gates, and statistics of units in steps or in shares."""
        if channel.kind == "unit" and channel.unit != "step" and "left" not in channel.labels.get("statistic", ()):
            return False
        return (channel.kind, channel.dims) in WANTED

    def concerns(self, name: str) -> bool:
        """Openers or gates that could not be computed."""
        return ":gate" in name

    def build(self) -> None:
        """Bars above; retention and histogram below; text at the bottom."""
        self.where, self.which = chooser([], "Place in the model"), chooser([], "Which gate")
        self.units, self.least = chooser([MEAN, ONE], WHICH), chooser(list(LEAST), SEEN)
        self.span = QSpinBox()
        self.span.setRange(1, LONGEST_SPAN)
        self.span.setValue(FIRST_SPAN)
        self.span.setSuffix(" steps")
        self.span.setAccessibleName("Span of the retention in steps")
        self.span.setToolTip("Retention at a step: the share that is left there of the state this many steps before")
        for name, widget in (
            ("Layer", self.where), ("Gate", self.which), ("of", self.units), ("seen ≥", self.least),
            ("Retention", self.span),
        ):  # fmt: skip
            self.controls.addWidget(caption(name))
            self.controls.addWidget(widget)
        self.where.currentTextChanged.connect(self._chosen)
        for box in (self.which, self.units, self.least):
            box.currentTextChanged.connect(self.redraw)
        self.span.valueChanged.connect(self.redraw)
        self.bars = TokenBars(self.theme)
        self.figure.addItem(self.bars.plot, row=0, col=0, colspan=3)
        self.kept = MapRow(self.figure, 1, self.steps, self.theme, label="unit")
        self.marks = Marks(self.theme)
        self.kept.plot.addItem(self.marks)
        self.scales = LogHistogram(self.theme, label="units", bottom="memory timescale τ in steps")
        self.figure.addItem(self.scales.plot, row=1, col=2)
        self.summary = TextColumns(self.theme)
        self.figure.addItem(self.summary, row=2, col=0, colspan=3)
        layout = self.figure.ci.layout
        for column, stretch in ((0, 3), (1, 0), (2, 2)):
            layout.setColumnStretchFactor(column, stretch)
        for row, stretch in ((0, 3), (1, 4), (2, 0)):
            layout.setRowStretchFactor(row, stretch)
        self.plots = [self.kept.plot, self.bars.plot]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.kept, self.bars, self.scales, self.marks):
            part.set_theme(theme)
        self.summary.theme = theme
        self.summary.update()
        super().set_theme(theme)

    def _chosen(self, place: str) -> None:
        self.looking.move(place=place)
        self.redraw()

    # -- what there is

    @classmethod
    def choose(cls, found: list[Channel]) -> list[Channel]:
        """Shares of units alone, of a layer without gates, are not shown, nor gates of which nothing says what keeps
        the state: nothing would be drawn of them."""
        return found if any(c.kind in ("opener", "memory") or c.unit == "step" for c in found) else []

    @property
    def gates(self) -> GatesOfPlace:
        """What the capture has of the chosen place."""
        here = [channel for channel in self.channels() if channel.place == self.where.currentText()]
        return GatesOfPlace(self.capture, self.frame, here)

    def table(self) -> Channel | None:
        """The table that is chosen."""
        return chosen(self.which, self.gates.tables())

    @property
    def unit(self) -> int:
        """The unit under the cursor, else the first."""
        return self.looking.position.unit or 0

    # -- drawing

    def update_contents(self) -> None:
        """Bars, retention, histogram and text of the chosen place."""
        known = {c.place: None for c in self.channels() if c.kind in ("opener", "gate", "memory")}
        set_options(self.where, list(known) or list(dict.fromkeys(c.place for c in self.channels())))
        offer_channels(self.which, self.gates.tables())
        self.which.setEnabled(self.which.count() > 0)
        self._draw_bars()
        self._draw_retention()
        self._draw_timescales()
        self._draw_summary(self.looking.position.unit)
        self._leave_out()

    def _leave_out(self) -> None:
        """In a figure of a size that was asked for, what has no room: the timescales, the texts."""
        layout, wide, high = self.figure.ci.layout, self.width() >= SMALL[0], self.height() >= SMALL[1]
        lacking = {"the timescales of units": not wide, "the summary in words": not high}
        self.figure.left_out = tuple(what for what, gone in lacking.items() if gone and self.figure.fixed)
        if not self.figure.fixed:
            return
        layout.setColumnMaximumWidth(2, TALLEST if wide else 0)
        layout.setColumnStretchFactor(2, 2 if wide else 0)
        if not high:
            self.summary.set_columns([])
        if not wide:
            self.scales.plot.hide()

    def sorted_table(self) -> tuple[list[str], Array, list[int], float]:
        """(names, values sorted from the most opening, occurrences, mean over all steps) of the chosen table."""
        unit = self.unit if self.units.currentText() == ONE else None
        return self.gates.sorted_table(self.table(), unit, int(self.least.currentText()))

    def _draw_bars(self) -> None:
        channel = self.table()
        self.bars.plot.setVisible(channel is not None)
        layout = self.figure.ci.layout
        layout.setRowStretchFactor(0, 3 if channel is not None else 0)
        layout.setRowMaximumHeight(0, TALLEST if channel is not None else 0)
        if channel is None:
            return
        names, values, counts, mean = self.sorted_table()
        one = self.units.currentText() == ONE
        who = f"unit {self.unit}" if one else "mean of all units"
        correlation = "correlation" if one else "|correlation|"
        what = "mean of the gate" if channel.dims[0] == "token" else correlation
        self.bars.show(names, values, counts, mean, what)
        overall = f"; over all steps {short(mean)} (dashed)" if np.isfinite(mean) else ""
        self.bars.plot.set_title(f"{channel.title}, {channel.place}: {what}, {who}{overall}")

    def _draw_retention(self) -> None:
        assert self.capture is not None
        found = self.gates.memory_gate()
        for item in (self.kept.plot, self.kept.bar):
            item.setVisible(found is not None)
        if found is None:
            return
        gate, high = found
        steps, units = self.capture.extent(gate.name, self.frame)
        span, frame, backward = self.span.value(), self.frame, gate.place.endswith(".reverse")
        capture = self.capture

        def read(first: int, stop: int) -> Array:
            return capture.block(gate.name, frame, (slice(first, stop), slice(None)))

        def overview(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
            values = retention_over(read, steps, units, cut, span, high=high, backward=backward)
            seen = largest_of(values, cells)
            return seen, seen

        levels = Levels(0.0, 1.0, masked=True, root=True)
        glance(self.capture, gate, frame)  # reads it all, so that damage is known before it is drawn
        before, after = (0, span - 1) if backward else (span - 1, 0)
        gaps = gaps_of(self.capture, gate.name, frame).reaching(before, after, steps)
        self.kept.show(overview, steps, units, levels, "1", self.capture.revision(gate.name, frame), gaps=gaps)
        self.kept.plot.step_axis.set_names(self.step_names())
        some = ", at some of the steps" if steps * units > LIMIT else ""
        letter = f"∏ {gate.title}" if high else f"∏ (1 − {gate.title})"
        marked = "; marked: long-term memory" if self._draw_marks(steps, units) else ""
        self.kept.plot.set_title(f"retention over {span} step{'' if span == 1 else 's'}, {letter}{some}{marked}")

    def _draw_marks(self, steps: int, units: int) -> bool:
        """Mark the runs of memory over the retention; False where there are none."""
        memory = next(iter(self.gates.of("memory", ("step", "unit"))), None)
        table = self.gates.runs_of_memory()
        runs = self.gates.values(table)
        found = runs is None or table is None or bool((runs[row_of(table, "runs")] > 0).any())
        there = memory is not None and found
        self.marks.setVisible(there)
        if memory is not None and there:
            assert self.capture is not None
            glance(self.capture, memory, self.frame)
            revision = self.capture.revision(memory.name, self.frame)
            self.marks.set_source(
                overview_of(self.capture, memory.name, self.frame), steps, units, Levels(0.0, 1.0), revision,
                gaps_of(self.capture, memory.name, self.frame),
            )  # fmt: skip
        return there

    def _draw_timescales(self) -> None:
        gates = self.gates
        values = gates.timescales()
        self.scales.plot.setVisible(values is not None)
        if values is None:
            return
        never, broken = int(np.isposinf(values).sum()), int(np.isnan(values).sum())
        why = gates.told_of(np.nan, gates.scale_channel())
        more = (f", {never} never forget" if never else "") + (f", {broken} {why}" if broken else "")
        title = f"timescales of {counted(len(values), 'unit')}{more}"
        long = f"sequence: {self.steps.length:,} step{'' if self.steps.length == 1 else 's'}"
        self.scales.show(values, float(self.steps.length), long, title)

    def _draw_summary(self, unit: int | None) -> None:
        chosen = 0 if unit is None else unit
        columns = [(f"{self.where.currentText()}, mean of all units", self.summary_lines(None))]
        columns.append((f"unit {chosen}", self.summary_lines(chosen)))
        self.summary.set_columns([(heading, lines) for heading, lines in columns if lines])

    def summary_lines(self, unit: int | None) -> list[str]:
        """A summary of the numbers of one unit, or of the layer as a whole."""
        return self.gates.summary_lines(unit, self.steps.length)

    # -- cursor, readout, numbers

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its gates; another unit its bars, its row and its text."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        self.kept.show_row(new.unit)
        if new.unit != old.unit:
            self._draw_summary(new.unit)
            if self.units.currentText() == ONE:
                self._draw_bars()

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the retention, the cursor goes to the step and unit under the mouse; a bar is marked."""
        if plot is self.bars.plot:
            self.marked.set(plot, self.bars.at(x), round(x))
            return
        found = self.gates.memory_gate()
        if plot is self.kept.plot and found is not None and self.capture is not None:
            units = self.capture.extent(found[0].name, self.frame)[1]
            self.looking.move(step=round(x), unit=min(max(0, round(y)), units - 1), place=self.where.currentText())

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """What opens the chosen gate most and least, the retention at step and unit, and the unit's timescale."""
        names, values, counts, _ = self.sorted_table()
        marked = self.marked.at(self.bars.plot, len(names))
        if marked is None and position.step is None:
            return []
        rows = self._opener_rows(names, values, counts, marked) if names else []
        return rows if position.unit is None else rows + self._memory_rows(position.step, position.unit)

    def _opener_rows(
        self, names: list[str], values: Array, counts: list[int], marked: int | None
    ) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        there = np.flatnonzero(~np.isnan(values))
        verb = self._verb()
        ends = ((f"{verb} it most", there[0]), (f"{verb} it least", there[-1])) if len(there) else ()
        if len(there) > 1 and np.isclose(values[there[0]], values[there[-1]], rtol=1e-6, atol=0.0):
            ends = ()  # a gate that is constant is opened by none
            alike = self.gates.told_of(values[there[0]], self.table())
            rows.append((f"{self.which.currentText()}, the same for all {len(there):,}", alike))
        for what, i in (("marked", marked), *ends):
            if i is not None:
                times = f" (×{counts[i]:,})" if counts else ""
                value = self.gates.told_of(values[i], self.table())
                rows.append((f"{self.which.currentText()}, {what}", f"{names[i]!r}: {value}{times}"))
        if not len(there):
            why = self.gates.told_of(np.nan, self.table())
            why = "nothing to compare in one step" if why == "NaN" and self.steps.length < 2 else why
            rows.append((f"{self.which.currentText()}, {verb} it most", why))
        return rows

    def _verb(self) -> str:
        """What the first of the table does to the gate; |correlation| does not tell opening from closing."""
        channel = self.table()
        either = channel is not None and channel.dims[0] == "feature" and self.units.currentText() != ONE
        return "moves" if either else "opens"

    def _memory_rows(self, step: int | None, unit: int) -> list[tuple[str, str]]:
        gates, rows, span = self.gates, [], self.span.value()
        found = gates.memory_gate()
        if found is None:
            return []
        kept = None if step is None else gates.retention_at(step, unit, span)
        if kept is not None:
            rows.append((f"retention over {counted(span, 'step')} [{step}, {unit}]", gates.told_of(kept, found[0])))
        scales = gates.timescales()
        if scales is not None and unit < len(scales):
            rows.append((f"timescale of unit {unit} in steps", gates.told_of(scales[unit], gates.scale_channel())))
        return rows

    def data(self) -> dict[str, Array]:
        """Every table of the chosen place, its memory runs and its timescales."""
        gates = self.gates
        wanted = gates.of("opener", *(dims for kind, dims in WANTED if kind == "opener"))
        wanted += gates.of("memory", ("step", "unit"), ("statistic", "unit"))
        wanted += [channel for channel in gates.of("unit", ("unit",)) if channel.unit == "step"]
        return {channel.name: gates.capture.array(channel.name, self.frame) for channel in wanted}
