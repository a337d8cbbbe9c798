"""Units: select a range of steps, see which units are on exactly there, and where else they are on together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox

from inspector.analysis.unit_matching import MOST_SPANS, Match, Span, longest_range, row_label, word_at
from inspector.analysis.unit_search import Found, search
from inspector.capture.pyramid import reduce_rows, shrink
from inspector.gui.panel.axes_of_data import UNITS
from inspector.gui.panel.base import Panel, caption, chooser, measured, number, set_options
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plain_text import running
from inspector.gui.widgets.plots.source import glance
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve
from inspector.gui.widgets.tables.textrows import TextRow, TextRows
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
SEARCH_BYTES = 1 << 30
"""The part of a channel that is searched for other spans: all of 100,000 steps of 2,000 units."""
LIVE_BYTES = 16 << 20
"""The size that is searched at every tick during a run; larger channels are searched when it has ended."""
CONTEXT, AXIS = 40, 96
ROW, AROUND_ROWS, ABOVE_AND_BELOW = 15, 62, 240
"""Pixels of height of a unit's row, of the map's title and axis, and of all the rest."""
TALLEST = 16_000
TOGETHER, PASSAGES, NARROW = 60, 70, 420
"""Pixels of height of the other parts in a figure of a size that was asked for, and of width below which the title has
few words there."""
"""Steps of text around a passage, and the width of the axis with the units."""
BEGIN, END = "First step of the range", "Last step of the range"


@PANELS.register("units")
class Units(Panel):
    """Any (step, unit) channel of kind "state" or "gate"."""

    tab_order, tab_row = 20, "upper"
    menu_group = "inside"
    key, title = "units", "Units"
    hint = "Which units are on exactly in a chosen range of steps, and where else. Run a model with a recurrent layer."
    shows = ("states", "scans", "gates")
    needs_height = 320
    axes_of_data = UNITS

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """States and gates over steps and units."""
        return channel.kind in ("state", "gate") and channel.dims == ("step", "unit")

    def build(self) -> None:
        """How many are on, the best units, and the passages where they are on together."""
        self.figure.shrinks = True
        self._make_boxes()
        self._make_together()
        self.figure.addItem(self.together, row=0, col=0)
        self.row = MapRow(self.figure, 1, self.steps, self.theme, label="")
        self.row.plot.getAxis("left").setWidth(AXIS)
        self.texts = TextRows(self.theme)
        self.figure.addItem(self.texts, row=2, col=0, colspan=2)
        for row, stretch in enumerate((2, 4, 4)):
            self.figure.ci.layout.setRowStretchFactor(row, stretch)
        self.plots = [self.together, self.row.plot]
        self.reset()
        self.which.currentTextChanged.connect(self._chosen)
        self.threshold.valueChanged.connect(self.redraw)
        self.begin.valueChanged.connect(self._typed)
        self.end.valueChanged.connect(self._typed)
        self.brush.sigRegionChangeFinished.connect(self._brushed)
        self.texts.chosen.connect(self._go_to)
        self.steps.changed.connect(self._in_view)

    def _make_boxes(self) -> None:
        """The state, the threshold above which a unit is on, and the range."""
        self.which = chooser([], "Which state or gate")
        self.threshold = QDoubleSpinBox(decimals=2, singleStep=0.05, minimum=0.0, maximum=1e6)
        self.begin, self.end = QSpinBox(), QSpinBox()
        for box, name in ((self.threshold, "A unit is on beyond"), (self.begin, BEGIN), (self.end, END)):
            box.setAccessibleName(name)
            box.setToolTip(name)
            box.setKeyboardTracking(False)
        for label, widget in (
            ("State or gate", self.which), ("On beyond", self.threshold), ("Steps", self.begin), ("to", self.end),
        ):  # fmt: skip
            self.controls.addWidget(caption(label))
            self.controls.addWidget(widget)

    def _make_together(self) -> None:
        """The share of the searched units that is on, with the range and the passages."""
        self.together = StepPlot(self.steps, self.theme, label="on together")
        self.together.getAxis("left").setWidth(AXIS)
        self.together.getAxis("bottom").setStyle(showValues=False)
        self.together.getAxis("bottom").showLabel(False)
        self.together.vb.setYRange(0, 1.05, padding=0)
        self.line = curve(self.theme, 0)
        self.brush = pg.LinearRegionItem(swapMode="sort")
        self.shades = [pg.LinearRegionItem(movable=False) for _ in range(MOST_SPANS)]
        self.together.addItem(self.line)
        for item in (*self.shades, self.brush):
            self.together.addItem(item, ignoreBounds=True)

    def reset(self) -> None:
        """No range yet, nothing found."""
        self._range: tuple[int, int] | None = None
        self._default_for = ""
        self._key: Any = None
        self.found = Found()

    @property
    def matches(self) -> list[Match]:
        """The units that are listed."""
        return self.found.matches

    @property
    def searched(self) -> list[Match]:
        """The first of them, which are searched for together."""
        return self.found.searched

    @property
    def spans(self) -> list[Span]:
        """The passages at which they are on together."""
        return self.found.spans

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.texts.theme = theme
        self.line.setPen(pg.mkPen(theme.series[0], width=1.4))
        self.brush.setBrush(pg.mkBrush(theme.cursor + "38"))
        self.brush.setHoverBrush(pg.mkBrush(theme.cursor + "50"))
        for line in self.brush.lines:
            line.setPen(pg.mkPen(theme.cursor, width=1.5))
        for shade in self.shades:
            shade.setBrush(pg.mkBrush(theme.accent + "38"))
            for line in shade.lines:
                line.setPen(pg.mkPen(None))
        super().set_theme(theme)
        self.together.getAxis("bottom").showLabel(False)

    # -- what is chosen

    def _chosen(self, name: str) -> None:
        if ":" in name and name.rpartition(":")[0] != self.looking.position.place:
            self.looking.move(place=name.rpartition(":")[0])
        self.redraw()

    def _typed(self) -> None:
        self._set_range(self.begin.value(), self.end.value())

    def _brushed(self) -> None:
        low, high = self.brush.getRegion()
        self._set_range(round(low + 0.5), round(high - 0.5))

    def _set_range(self, first: int, last: int) -> None:
        """Another range, in order, inside the sequence, and short enough to be scored."""
        channel = self.chosen()
        if channel is None or self.capture is None:
            return
        steps, units = self.capture.extent(channel.name, self.frame)
        first, last = min(max(0, first), steps - 1), min(max(0, first, last), steps - 1)
        wanted = (first, min(last, first + longest_range(units) - 1))
        if wanted != self._range:
            self._range = wanted
            self.redraw()
        else:
            self._show_range()

    def _show_range(self) -> None:
        """Show the range in its three controls, without signals from them."""
        assert self._range is not None
        first, last = self._range
        for box, value in ((self.begin, first), (self.end, last)):
            box.blockSignals(True)
            box.setRange(0, max(0, self.steps.length - 1))
            box.setValue(value)
            box.blockSignals(False)
        self.brush.blockSignals(True)
        self.brush.setRegion((first - 0.5, last + 0.5))
        self.brush.blockSignals(False)

    def chosen(self) -> Channel | None:
        """The channel that is shown."""
        return next((channel for channel in self.channels() if channel.name == self.which.currentText()), None)

    # -- finding and drawing

    def update_contents(self) -> None:
        """Score the units over the range, search the rest, draw both."""
        set_options(self.which, [channel.name for channel in self.channels()])
        channel = self.chosen()
        assert channel is not None and self.capture is not None
        steps, _ = self.capture.extent(channel.name, self.frame)
        levels, _, _ = glance(self.capture, channel, self.frame)
        if self._default_for != channel.name:  # half of what the colours show: 0.5 for gates, about 0.5 for h
            self._default_for = channel.name
            self.threshold.blockSignals(True)
            self.threshold.setValue(round(0.5 * max(abs(levels.low), abs(levels.high)), 2))
            self.threshold.blockSignals(False)
        if self._range is None or self._range[1] >= steps:
            self._range = word_at(self.step_names(), steps // 2, steps)
            self._range = (self._range[0], min(self._range[1], steps - 1))
        self._show_range()
        self._find(channel)
        self._draw_units(channel)
        self._draw_spans(channel)
        self._leave_out()

    def _find(self, channel: Channel) -> None:
        """Find units of the range and their spans elsewhere, unless nothing on which they depend has changed."""
        assert self.capture is not None and self._range is not None
        revision = self.capture.revision(channel.name, self.frame)
        key = (channel.name, self.frame, revision, self._range, self.threshold.value(), self.capture.stop is None)
        if key == self._key:
            return
        self._key = key
        most = LIVE_BYTES if self.capture.stop is None else SEARCH_BYTES
        self.found = search(self.capture, channel, self.frame, self._range, self.threshold.value(), most)

    def _draw_units(self, channel: Channel) -> None:
        assert self.capture is not None and self._range is not None
        steps, _ = self.capture.extent(channel.name, self.frame)
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        gaps = gaps_of(self.capture, channel.name, self.frame)
        self.row.show(
            self._overview, steps, len(self.matches), levels, channel.unit, 0, nan=nan, infinite=infinite,
            gaps=gaps.of_rows([match.unit for match in self.matches]),
        )  # fmt: skip
        where = f"in steps {self._range[0]} to {self._range[1]}, by F1"
        self.row.plot.set_title(
            f"on {where}"
            if self.figure.fixed and self.width() < NARROW
            else f"units on beyond {self.threshold.value():g} {where}  "
            "(✓ on throughout, off just before and after; • searched)"
        )
        digits = max((len(str(match.unit)) for match in self.matches), default=1)
        ticks = [(i, row_label(match, match in self.searched, digits)) for i, match in enumerate(self.matches)]
        self.row.plot.getAxis("left").setTicks([ticks])
        self.figure.ci.layout.setRowMinimumHeight(1, ROW * len(self.matches) + AROUND_ROWS)
        self.figure.setMinimumHeight(max(self.needs_height, ABOVE_AND_BELOW + ROW * len(self.matches)))
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names())
        self._draw_together()

    def _leave_out(self) -> None:
        """In a figure of a size that was asked for, what has no room beside the map: the passages, then the share."""
        figure, layout = self.figure, self.figure.ci.layout
        left = figure.height() - AROUND_ROWS - ROW * len(self.matches)
        together = not figure.fixed or left >= TOGETHER
        passages = not figure.fixed or left >= TOGETHER + PASSAGES
        lacking = {"how many are on together": not together, "where else they are on": not passages}
        figure.left_out = tuple(what for what, gone in lacking.items() if gone)
        self.together.setVisible(together)
        self.texts.setVisible(passages)
        for row, there, stretch in ((0, together, 2), (2, passages, 4)):
            layout.setRowMaximumHeight(row, TALLEST if there else 0)
            layout.setRowMinimumHeight(row, 0)
            layout.setRowStretchFactor(row, stretch if there else 0)

    def _overview(self, cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        """Minima and maxima of the chosen units over some steps; NaN where nothing was read."""
        start, stop = cut
        offset = self.found.offset
        values = self.found.values[max(0, start - offset) : max(0, stop - offset)]
        ahead = min(max(0, offset - start), stop - start)
        padded = np.full((stop - start, values.shape[1]), np.nan, values.dtype)
        padded[ahead : ahead + len(values)] = values
        return shrink(padded, padded, (cells, values.shape[1]))

    def _draw_together(self) -> None:
        """The share of the chosen units that is on, over the steps in view."""
        low, high = self.steps.bounds
        first = max(self.found.offset, int(low))
        share = self.found.share(slice(first - self.found.offset, max(0, int(high) + 2 - self.found.offset)))
        factor = max(1, -(-len(share) // POINTS))
        highest = reduce_rows(share, factor, np.maximum)
        x = first + np.arange(len(highest)) * factor + (factor - 1) / 2
        self.line.setData(x, highest)
        channel = self.chosen()
        if channel is not None and self.capture is not None:
            gaps = gaps_of(self.capture, channel.name, self.frame)
            units = [match.unit for match in self.searched]
            self.together.mark_gaps(gaps.of_rows(units) if units else gaps)
        for shade, span in zip(self.shades, [*self.spans, *[None] * len(self.shades)], strict=False):
            shade.setVisible(span is not None)
            if span is not None:
                shade.setRegion((span.first - 0.5, span.last + 0.5))

    def _draw_spans(self, channel: Channel) -> None:
        assert self.capture is not None
        names, many = self.step_names(), len(self.searched)
        steps, _ = self.capture.extent(channel.name, self.frame)
        offset, read, lost = self.found.offset, len(self.found.values), self.found.unknown_steps()
        where = f" (steps {offset:,} to {offset + read - 1:,} of {steps:,} searched)" if read < steps else ""
        where += f"; {lost:,} step{'' if lost == 1 else 's'} not known" if lost else ""
        if not self.searched:
            title = "none of the chosen steps is known: no unit can be matched"
        elif not self.spans:
            title = f"nowhere else are most of these {many} units on together{where}" if many > 1 else (
                f"nowhere else is this unit on{where}"
            )  # fmt: skip
        else:
            title = f"where else most of these {many} units are on together, best first{where}"
            title = title if many > 1 else f"where else this unit is on, best first{where}"
        self.texts.set_rows(title, [self.passage(span, names) for span in self.spans])

    def passage(self, span: Span, names: tuple[str, ...]) -> TextRow:
        """A span with the text around it."""
        steps = f"{span.first}" if span.first == span.last else f"{span.first} to {span.last}"
        heading = f"{steps}   {100 * span.share:.0f} % on"
        spaces = any(len(name) > 1 for name in names[max(0, span.first - CONTEXT) : span.last + 1 + CONTEXT])
        before, marked, after = (
            "".join(running(name, spaces) for name in names[max(0, cut.start) : max(0, cut.stop)])
            for cut in (
                slice(span.first - CONTEXT, span.first), slice(span.first, span.last + 1),
                slice(span.last + 1, span.last + 1 + CONTEXT),
            )
        )  # fmt: skip
        return TextRow(heading, before, marked, after)

    # -- the cursor

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self._draw_together()

    def _go_to(self, index: int) -> None:
        """A passage was clicked."""
        self.looking.move(step=self.spans[index].first)

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its state; the unit under the cursor is marked."""
        if new.place != old.place and new.place:
            part = self.which.currentText().rpartition(":")[2]
            for wanted in (f"{new.place}:{part}", f"{new.place}:h"):
                if self.which.findText(wanted) >= 0:
                    self.which.setCurrentText(wanted)
                    break
        units = [match.unit for match in self.matches]
        self.row.show_row(units.index(new.unit) if new.unit in units else None)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and the chosen unit under the mouse."""
        changes: dict[str, Any] = {"step": round(x)}
        if plot is self.row.plot and 0 <= round(y) < len(self.matches):
            changes |= {"unit": self.matches[round(y)].unit, "place": self.which.currentText().rpartition(":")[0]}
        self.looking.move(**changes)

    def move_by(self, rows: int) -> None:
        """Up and down: the next of the chosen units."""
        units, unit = [match.unit for match in self.matches], self.looking.position.unit
        if units:
            at = units.index(unit) + rows if unit in units else 0
            self.looking.move(unit=units[min(max(0, at), len(units) - 1)])

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The value of the unit at the step and whether it is on, how many others are, and how it fits the range."""
        rows: list[tuple[str, str]] = []
        channel, step, unit = self.chosen(), position.step, position.unit
        if channel is None or self.capture is None or step is None:
            return rows
        steps, units = self.capture.extent(channel.name, self.frame)
        if unit is not None and unit < units and step < steps:
            value = exact_at(self.capture, channel.name, self.frame, step, unit)
            what = f"{self.changed(channel)}{channel.signal}[{step}, {unit}]  {channel.place}"
            word = "" if isinstance(value, str) or np.isnan(value) else f", {self.word(value)}"
            rows.append((what, f"{measured(value, channel.unit)}{word}"))
        if 0 <= step - self.found.offset < len(self.found.values) and self.searched:
            rows.append((f"searched units that are on [{step}]", self.found.how_many(step)))
        for match in self.matches:
            if match.unit == unit:
                rows.append((f"F1 of unit {unit} in the range", number(match.f1)))
        return rows

    def word(self, value: float) -> str:
        """Whether a value is beyond the threshold, and on which side, as text."""
        if value > self.threshold.value():
            return "on"
        channel = self.chosen()
        signed = channel is not None and channel.limits != (0, 1)
        return "on, negative" if signed and value < -self.threshold.value() else "off"

    def data(self) -> dict[str, Array]:
        """The units (unit, sign, F1, exact, searched), the spans (first, last, share on, score), and the share on."""
        listed = [[m.unit, m.sign, m.f1, m.exact, m in self.searched] for m in self.matches]
        return {
            "units": np.array(listed, np.float64).reshape(-1, 5),
            "spans": np.array([[s.first, s.last, s.share, s.score] for s in self.spans]).reshape(-1, 4),
            "on": np.ma.masked_invalid(self.found.share()),
        }
