"""Token: what one token does in the whole text: whom it attends to and who to it, what it influences, its gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt

from inspector.capture.pyramid import reduce_rows
from inspector.gui.panel.arranged import Arranged, is_wide
from inspector.gui.panel.axes_of_data import BY_STEP, DataAxes
from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.exact import exact_at, or_why
from inspector.gui.panel.long_traces import LongTraces
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.controls import number
from inspector.gui.widgets.numbers import SENSIBLE, digits_of, short
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve, decimated, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
MOST_OF_MAP = 4_000_000
"""Entries of a map of which a column is read while the mouse moves: 2,000 steps."""
MOST_OF_GATE = 2_000_000
"""Entries of a gate whose mean over units is drawn; of a larger one the unit under the cursor is."""
LINES = 4
"""Curves of one token in a plot."""
LONGEST = 16
"""Letters of a title that stands in a legend as it is."""
TO_AND_FROM = ("from other steps to it", "from it to other steps")
ATTENTION, INFLUENCE, GRADIENT, GATES = range(4)
TITLES = ("attention", "from step to step", "gradient by step", "gates")
LOGARITHMIC = (INFLUENCE, GRADIENT)


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: what it is, and a number at each step."""

    name: str
    values: Array
    digits: int = SENSIBLE


ROW, NARROW_ROW, NARROW = 130, 145, 360
"""Pixels of height that a plot needs, one that is so narrow that its legend takes several rows, and its width."""


@PANELS.register("lens")
class Lens(Panel):
    """Attention of a sequence to itself, maps over (step, source), gradients by step, gates."""

    tab_order, tab_row = 27, "upper"
    menu_group = "sequence"
    forward_last = True
    key, title = "lens", "Token"
    hint = "What the token under the cursor does in the whole text. Needs attention, gates, or gradients by step."
    shows = ("attention/maps", "gates", "gradient/lag_map", "gradients", "gradients/embedding")
    extra = ("bptt",)
    needs_height = 240

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """What relates a step to others, or has a number or a gate at each."""
        if channel.kind == "attention" and channel.dims == ("head", "query", "key"):
            return channel.domain("query") == channel.domain("key")
        related = channel.kind in ("map", "bptt") and channel.dims == ("step", "source")
        by_step = channel.kind == "gradient" and channel.dims == ("step",)
        return related or by_step or (channel.kind == "gate" and channel.dims == ("step", "unit"))

    def build(self) -> None:
        """One plot for each of them, a solid curve for the token under the cursor and a dashed one for a pin."""
        self.figure.shrinks = True
        self.where = self.add_choice("Layer", "Place in the model")
        self.plots, self.legends = [], []
        self.lines: list[list[Any]] = []
        for row in range(len(TITLES)):
            plot = StepPlot(self.steps, self.theme, label="")
            if row in LOGARITHMIC:
                plot.setAxisItems({"left": LogAxis()})
                plot.getAxis("left").setWidth(58)
            lines = [curve(self.theme, n % LINES, dashed=n >= LINES) for n in range(2 * LINES)]
            for line in lines:
                plot.addItem(line)
            self.plots.append(plot)
            self.lines.append(lines)
            self.legends.append(Legend(plot))
        self.arranged = Arranged(self.figure, self.plots)
        self.traces = LongTraces(self)
        self.traces.more.connect(self._read_more)
        pins_of(self.looking).changed.connect(self.draw_if_seen)
        self.steps.changed.connect(self._view_changed)
        self.reset()

    def reset(self) -> None:
        """Nothing is drawn of another capture."""
        self.traces.forget()
        self.drawn_curves: dict[int, list[Curve]] = {}
        self._there: list[int] = []
        self._columns = 1

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for lines, legend in zip(self.lines, self.legends, strict=True):
            legend.set_theme(theme)
            for n, line in enumerate(lines):
                style = Qt.PenStyle.DashLine if n >= LINES else Qt.PenStyle.SolidLine
                line.setPen(theme.series[n % LINES], width=1.4, style=style)
        super().set_theme(theme)

    # -- what is drawn of a token

    def tokens(self) -> list[int]:
        """The step under the cursor, the first without one, and that of the first pin elsewhere."""
        step, length = self.looking.position.step or 0, self.looking.length
        pinned = [one for one, _ in pins_of(self.looking).along(self.looking.axis) if one != step and one < length]
        return [step, *pinned[:1]]

    def of(self, *kinds: str) -> list[Channel]:
        """Channels of the chosen place, or of the first that has any: attention and gates are seldom of one module."""
        found = [one for one in self.channels() if one.kind in kinds]
        places = [one.place for one in found]
        place = self.where.currentText() if self.where.currentText() in places else places[0] if places else ""
        return [one for one in found if one.place == place]

    def update_contents(self) -> None:
        """Every plot that the chosen place has something for."""
        set_options(self.where, list(dict.fromkeys(one.place for one in self.channels())))
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names())
        self._draw()

    def _draw(self, rows: tuple[int, ...] = tuple(range(len(TITLES)))) -> None:
        """Draw some of the plots: gradients and gates do not depend on the token."""
        steps, notes = self.tokens(), [""] * len(TITLES)
        has = (self.of("attention"), self.of("map", "bptt"), self.of("gradient"), self.of("gate"))
        drawn = self._with_room([row for row in range(len(TITLES)) if has[row]])
        self._arrange(drawn)
        for row, channels in ((row, has[row]) for row in rows):
            tables: list[list[Curve]] = []
            if row in (ATTENTION, INFLUENCE):
                notes[row] = self._too_large(channels)
                tables = [self._related(channels, step) for step in steps]
            elif channels:
                tables = [self._along(channels)]
            self.drawn_curves[row] = tables[0] if tables else []
            place = channels[0].place if channels else ""
            self._show(row, tables, notes[row], place, last=self._at_bottom(row))

    def _with_room(self, drawn: list[int]) -> list[int]:
        """The first plots, as many as have room in a figure of a size that was asked for; all of them elsewhere."""
        figure = self.figure
        across = 2 if is_wide(self.width(), self.height()) else 1
        fitting = max(1, across * (figure.height() // ROW)) if figure.fixed else len(drawn)
        figure.left_out = tuple(TITLES[row] for row in drawn[fitting:])
        return drawn[:fitting]

    def _arrange(self, drawn: list[int]) -> None:
        """The plots that have something, in a wide panel in two columns."""
        self._there, self._columns = drawn, 2 if len(drawn) > 1 and is_wide(self.width(), self.height()) else 1
        cells = {self.plots[row]: (at // self._columns, at % self._columns, 1, 1) for at, row in enumerate(drawn)}
        rows = -(-len(drawn) // self._columns)
        if len(drawn) % self._columns:  # the last one has the whole row
            cells[self.plots[drawn[-1]]] = (rows - 1, 0, 1, self._columns)
        self.arranged.place(cells, [1] * rows, [1] * self._columns)
        row = ROW if self.width() >= NARROW * self._columns else NARROW_ROW
        if self.figure.minimumHeight() != row * rows:
            self.figure.setMinimumHeight(row * rows)

    def _at_bottom(self, row: int) -> bool:
        """Whether nothing stands below a plot, which then has the numbers of the steps."""
        return row in self._there[-self._columns :] or self._columns > 1

    def resizeEvent(self, event: Any) -> None:
        """Another form of the panel: another number of columns."""
        super().resizeEvent(event)
        columns = 2 if len(self._there) > 1 and is_wide(self.width(), self.height()) else 1
        if self.state == "figure" and columns != self._columns:
            self.draw_if_seen()

    def _show(self, row: int, tables: list[list[Curve]], note: str, place: str, *, last: bool) -> None:
        plot, legend = self.plots[row], self.legends[row]
        legend.clear()
        for n, line in enumerate(self.lines[row]):
            table = tables[n // LINES] if n // LINES < len(tables) else []
            one = table[n % LINES] if n % LINES < len(table) else None
            if one is None:
                line.setData([], [])
                continue
            line.setData(*self._in_view_of(one, log=row in LOGARITHMIC))
            if n < LINES:
                legend.addItem(line, one.name)
        which = " and, dashed, ".join(self.called(step) for step in self.tokens())
        of = f" of {which}" if row in (ATTENTION, INFLUENCE) and which else ""
        plot.set_title(
            f"{TITLES[row]}{of}{', ' + place if place else ''}{note or ('' if tables else ': point at a token')}"
        )
        plot.getAxis("bottom").setStyle(showValues=last)
        plot.getAxis("bottom").showLabel(last)

    def _in_view_of(self, one: Curve, *, log: bool) -> tuple[Array, Array]:
        """(x, y) of the steps in view, as minima and maxima where they are more than a screen shows."""
        low, high = self.steps.bounds
        first, stop = max(0, int(low)), min(len(one.values), int(high) + 2)
        part = one.values[first:stop]
        part = logarithm(part) if log else np.where(np.isfinite(part), part, np.nan)
        factor = max(1, -(-len(part) // (POINTS // 2)))
        least, most = (reduce_rows(part, factor, how) for how in (np.fmin, np.fmax)) if factor > 1 else (part, part)
        return decimated(least, most, float(first), float(factor))

    def _view_changed(self, _low: float, _high: float) -> None:
        if self.state == "figure" and not self.over.on and self.in_sight():
            self._draw()

    def called(self, step: int) -> str:
        """A step with its token."""
        names = self.step_names()
        return f"{step} {token(names[step])!r}" if step < len(names) else f"step {step}"

    def _too_large(self, channels: list[Channel]) -> str:
        assert self.capture is not None
        large = [c for c in channels if self._entries(c) > MOST_OF_MAP]
        return f": only what it looks back at; {large[0].name} is too large to read a column of it" if large else ""

    def _entries(self, channel: Channel) -> int:
        assert self.capture is not None
        extent = self.capture.extent(channel.name, self.frame)[-2:]
        return int(extent[0] * extent[1])

    def _related(self, channels: list[Channel], step: int) -> list[Curve]:
        """Of each channel the row of a step (what comes to it from each source) and its column (what it gives)."""
        assert self.capture is not None
        found = []
        for channel in channels[: LINES // 2]:
            extent = self.capture.extent(channel.name, self.frame)
            heads: tuple[slice, ...] = ()
            words = TO_AND_FROM if len(channels) == 1 else ("to it", "from it")
            if channel.kind == "attention":
                head = min(self.looking.position.head or 0, extent[0] - 1)
                heads, words = (slice(head, head + 1),), (f"it attends to, head {head}", "attends to it")
            if step >= min(extent[-2:]):
                continue
            row = self.capture.block(channel.name, self.frame, (*heads, slice(step, step + 1), slice(None)))
            name = f"{brief(channel)} " if len(channels) > 1 else ""
            found.append(Curve(name + words[0], _floats(row), min(SENSIBLE, digits_of(row))))
            if self._entries(channel) <= MOST_OF_MAP:
                column = self.capture.block(channel.name, self.frame, (*heads, slice(None), slice(step, step + 1)))
                found.append(Curve(name + words[1], _floats(column), min(SENSIBLE, digits_of(column))))
        return found

    def _along(self, channels: list[Channel]) -> list[Curve]:
        """A number at each step: that of a gradient, the mean of a gate over units or that of the cursor's unit."""
        assert self.capture is not None
        found = []
        for channel in channels[:LINES]:
            extent = self.capture.extent(channel.name, self.frame)
            unit = self.looking.position.unit
            if channel.dims == ("step",):
                found.append(Curve(channel.title, _floats(self.capture.array(channel.name, self.frame))))
            elif unit is None and self._entries(channel) <= MOST_OF_GATE:
                values = np.ma.filled(self.capture.array(channel.name, self.frame).astype(np.float64), np.nan)
                found.append(Curve(f"{channel.title}, mean of units", values.mean(axis=1)))
            else:
                at = min(unit or 0, extent[1] - 1)
                values = self.traces.values(self.capture, channel, self.frame, at)
                found.append(Curve(f"{channel.title}, unit {at}", _floats(values)))
        return found

    def _read_more(self) -> None:
        """More of the units of a long gate is there."""
        if self.state == "figure" and self.in_sight():
            self._draw((GATES,))

    def complete(self) -> None:
        """Wait for everything that is being read: a figure in a file shows the whole."""
        self.traces.complete()
        self.redraw()

    # -- the cursor

    def follow(self, new: Position, old: Position) -> None:
        """Another token, unit or head; another place shows its own."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        elif new != old:
            self._draw((ATTENTION, INFLUENCE) if new.unit == old.unit else tuple(range(len(TITLES))))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse."""
        self.looking.move(step=round(x))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The token that it attends to most and that which attends to it most, the same of maps from step to step
        (other tokens than itself), and the numbers of curves by step."""
        step, rows = position.step, list[tuple[str, str]]()
        if step is None or self.capture is None:
            return rows
        for kinds, itself in ((("attention",), True), (("map", "bptt"), False)):
            for one in self._related(self.of(*kinds), step):
                known = np.isfinite(one.values) & (itself | (np.arange(len(one.values)) != step))
                if known.any():
                    at = int(np.argmax(np.where(known, one.values, -np.inf)))
                    most = f"{self.called(at)}: {short(one.values[at], one.digits)}" if one.values[at] else "nothing"
                    rows.append((f"[{step}] {one.name}: most", most))
        for channel in self.of("gradient"):
            if step < self.capture.extent(channel.name, self.frame)[0]:
                cell = exact_at(self.capture, channel.name, self.frame, step)
                rows.append((f"{channel.title} [{step}]  {channel.place}", measured(cell, channel.unit)))
        return rows + self._gates_at(step, position.unit)

    def _gates_at(self, step: int, unit: int | None) -> list[tuple[str, str]]:
        """The gates at a step: of a unit, or their mean over units where that is drawn."""
        assert self.capture is not None
        rows = []
        for channel in self.of("gate")[:LINES]:
            steps, units = self.capture.extent(channel.name, self.frame)
            if step >= steps or not units:
                continue
            if unit is None and self._entries(channel) <= MOST_OF_GATE:
                cells = self.capture.block(channel.name, self.frame, (slice(step, step + 1), slice(None)))
                value = float(_floats(cells).mean())
                told = or_why(value, self.capture, channel.name, self.frame)
                rows.append((f"{channel.title} [{step}], mean of units  {channel.place}", number(told)))
            else:
                at = min(unit or 0, units - 1)
                value = exact_at(self.capture, channel.name, self.frame, step, at)
                rows.append((f"{channel.title} [{step}, {at}]  {channel.place}", measured(value, channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """What is drawn of the token under the cursor, by the names of the curves."""
        return {f"{TITLES[row]}: {one.name}": one.values for row, table in self.drawn_curves.items() for one in table}

    def data_axes(self) -> DataAxes:
        """Every curve is over steps."""
        return dict.fromkeys(self.data(), BY_STEP)


def brief(channel: Channel) -> str:
    """A name for a legend with other channels: its title, of a long one the first word."""
    return channel.title if len(channel.title) <= LONGEST else channel.title.split()[0]


def _floats(values: Array) -> npt.NDArray[np.float64]:
    """A row or column of a map as numbers; what is not known is NaN, what is masked −∞ (which is not drawn)."""
    return np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan).reshape(-1)
