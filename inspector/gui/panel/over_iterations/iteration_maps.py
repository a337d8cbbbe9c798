"""Tables of many curves, and histograms, as maps over iterations: side by side, with the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.capture.curves import ITERATION, positions
from inspector.capture.view import View
from inspector.gui.panel.figure import Figure
from inspector.gui.panel.over_iterations.coarse_table import CoarseTable
from inspector.gui.widgets.gaps import Gaps, gaps_of
from inspector.gui.widgets.images.quantise import levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.numbers import round_numbers, round_step, short
from inspector.gui.widgets.plots.axes import StepAxis
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
NAMES_WIDTH = 150
"""Pixels of the axis of names."""
LONGEST, AROUND = 22, 70
"""Characters of a name, and pixels of a title and an axis."""
NAMED_PIXELS, ROW_PIXELS, LEAST_HEIGHT, MOST_HEIGHT = 13, 3, 200, 640
"""Pixels of a row with a name, of one without, and of a map."""
READ_SECONDS = 0.04
"""Seconds for which a long table is read before what there is of it is drawn."""


class IterationAxis(StepAxis):
    """Positions along an axis of iterations, labelled with the iteration of each."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self.numbers: Array | None = None

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        """Positions of round iterations, so far apart that these fit between them."""
        first, last = max(0, math.ceil(low)), math.floor(high)
        widest = max(len(text) for text in self.tickStrings([float(first), float(last)], 1.0, 1.0))
        room = QFontMetricsF(QFont()).averageCharWidth() * (widest + 3)
        room = max(1.0, size / room)
        if self.numbers is None or not first < last < len(self.numbers) or not _ascends(self.numbers):
            step = max(1.0, math.ceil(round_step(high - low, room)))
            return [(step, [n * step for n in range(math.ceil(first / step), math.floor(last / step) + 1)])]
        wanted = round_numbers(float(self.numbers[first]), float(self.numbers[last]), room)
        places = np.searchsorted(self.numbers, wanted)
        return [(1.0, [float(n) for n in dict.fromkeys(places.tolist())])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The iteration at each position."""
        if self.numbers is None:
            return [str(int(value)) for value in values]
        known = self.numbers
        return [f"{known[int(v)]:.10g}" if 0 <= v < len(known) else "" for v in values]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a map shows: the channel, its rows as columns of the channel, and their names; of a histogram of several
    things which of them (`of`)."""

    channel: Channel
    rows: tuple[int, ...]
    names: tuple[str, ...]
    of: int | None = None


class IterationMaps:
    """Up to three maps beside each other in the first row of a figure."""

    def __init__(self, figure: Figure, theme: Theme) -> None:
        self.figure, self.theme = figure, theme
        self.layout = figure.addLayout(row=0, col=0)
        self.rows: list[MapRow] = []
        self.axes: list[IterationAxis] = []
        self.names: list[StepAxis] = []
        self.shown: tuple[Shown, ...] = ()
        self.numbers: list[Array | None] = []
        self.complete = True
        """Whether all of what is shown was read; else `show` is to be called again."""
        self._coarse: dict[str, CoarseTable] = {}

    def forget(self) -> None:
        """Another capture."""
        self._coarse.clear()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for row in self.rows:
            row.set_theme(theme)

    @property
    def height(self) -> int:
        """Pixels that the maps need."""
        rows = max((len(one.rows) for one in self.shown), default=0)
        named = NAMED_PIXELS * rows + AROUND
        return max(LEAST_HEIGHT, named if named <= MOST_HEIGHT else min(MOST_HEIGHT, ROW_PIXELS * rows))

    def hide(self) -> None:
        """Nothing is shown as a map."""
        self.shown = ()
        for row in self.rows:
            row.plot.hide()
            row.bar.hide()
        self.layout.setMinimumHeight(0)
        self.layout.setMaximumHeight(0)
        self.complete = True

    def show(self, view: View, shown: Sequence[Shown]) -> None:
        """Show these beside each other; all rows of the first one are named."""
        while len(self.rows) < len(shown):
            self._make()
        self.shown = tuple(shown)
        self.layout.setMaximumHeight(16_000)
        self.layout.setMinimumHeight(self.height)
        self.complete = True
        self.numbers = [positions(view, one.channel.domain(ITERATION)) for one in shown]
        for n, row in enumerate(self.rows):
            row.plot.setVisible(n < len(shown))
            row.bar.setVisible(n < len(shown))
            if n < len(shown):
                self._draw(view, n, shown[n])

    def _make(self) -> None:
        number = len(self.rows)
        cell = self.layout.addLayout(row=0, col=number)
        row = MapRow(cell, 0, None, self.theme, label="", bottom="")
        names, axis = StepAxis("left"), IterationAxis()
        names.longest = LONGEST
        row.plot.setAxisItems({"left": names, "bottom": axis})
        row.plot.step_axis = row.plot._bottom = axis
        self.rows.append(row)
        self.axes.append(axis)
        self.names.append(names)
        row.set_theme(self.theme)

    def _draw(self, view: View, number: int, shown: Shown) -> None:
        row, channel, first = self.rows[number], shown.channel, number == 0
        self.axes[number].numbers = self.numbers[number]
        row.plot.label_bottom(view.axis(channel.domain(ITERATION)).title)
        self.names[number].set_names(shown.names if first else ())
        self.names[number].setWidth(NAMES_WIDTH if first else 8)
        self.names[number].setStyle(showValues=first)
        row.plot.set_title(channel.title)
        if channel.kind == "histogram":
            self._draw_histogram(view, row, shown)
            return
        coarse = self._coarse.setdefault(channel.name, CoarseTable(view, channel.name, channel.scale))
        coarse.update(READ_SECONDS)
        self.complete &= coarse.complete
        count = view.extent(channel.name)[0]
        seen = coarse.sample()[:, list(shown.rows)]
        levels = levels_of(seen, channel.scale, channel.limits)
        gaps = gaps_of(view, channel.name, -1).of_rows(shown.rows)  # type: ignore[arg-type]
        if not coarse.complete:
            gaps |= Gaps(missing=(((coarse.rows, count), (0, len(shown.rows))),))
        row.show(
            of_rows(coarse, shown.rows), count, len(shown.rows), levels, channel.unit,
            hash((view.revision(channel.name), shown.rows, coarse.rows)), nan=bool(np.isnan(seen).any()) and not gaps,
            infinite=bool(np.isinf(seen).any()), gaps=gaps,
        )  # fmt: skip

    def _draw_histogram(self, view: View, row: MapRow, shown: Shown) -> None:
        """Counts by bin; the first bin at the bottom."""
        values, gaps = counts_of(view, shown)
        row.plot.vb.invertY(False)
        levels = levels_of(values, "sequential", None)
        row.show_array(
            values[:, list(shown.rows)] if shown.rows else values, levels, shown.channel.unit,
            revision=view.revision(shown.channel.name), gaps=gaps,
        )  # fmt: skip

    # -- pointing

    def number_of(self, plot: Any) -> int | None:
        """Which map a plot is; None where it is none of them."""
        return next((n for n, row in enumerate(self.rows[: len(self.shown)]) if row.plot is plot), None)

    def at(self, plot: Any, x: float, y: float) -> tuple[Shown, int, int] | None:
        """(what is shown, position along its axis, row) under a point of a plot."""
        number = self.number_of(plot)
        if number is None or not self.shown[number].rows:
            return None
        shown, columns = self.shown[number], self.rows[number].map.boundingRect().width()
        row = min(max(0, round(y)), len(shown.rows) - 1)
        return shown, int(min(max(0, round(x)), columns - 1)), row

    def show_cursor(self, iteration: float | None, rows: dict[str, int]) -> None:
        """Mark an iteration in every map, and the row of each channel."""
        for row, shown, numbers in zip(self.rows, self.shown, self.numbers, strict=False):
            place = None
            if iteration is not None and numbers is not None and np.isfinite(numbers).any():
                place = float(np.nanargmin(np.abs(numbers - iteration)))
            row.plot.show_cursor(place if numbers is not None else iteration)
            row.show_row(rows.get(shown.channel.name))


def of_rows(table: CoarseTable, rows: tuple[int, ...]) -> Callable[[tuple[int, int], int], tuple[Array, Array]]:
    """The overview of some columns of a table."""

    def look(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        found = table.look(cut, cells)[0][:, list(rows)]
        return found, found

    return look


def counts_of(view: View, shown: Shown) -> tuple[Array, Gaps]:
    """(time, bin) the counts of a histogram channel, of one of its things where it has several."""
    channel = shown.channel
    extent = view.extent(channel.name)
    cut = () if shown.of is None else (slice(None), slice(shown.of, shown.of + 1))
    values = np.ma.filled(view.block(channel.name, -1, cut).astype(np.float64), np.nan)
    values = values if shown.of is None else values[:, 0]
    gaps = gaps_of(view, channel.name, -1, y=len(extent) - 1, at={} if shown.of is None else {1: shown.of})  # type: ignore[arg-type]
    return values, gaps


def bin_words(view: View, shown: Shown, at: int, row: int) -> str:
    """What a bin holds: its label, or its edges at that time; its number where neither is known."""
    if shown.names:
        return shown.names[row]
    edges = f"{shown.channel.name}/edges"
    if edges in view.channels:
        own = np.ma.filled(view.block(edges, -1, (slice(at, at + 1),))[0].astype(np.float64), np.nan)
        if row + 1 < len(own):
            return f"{short(own[row], 4)} to {short(own[row + 1], 4)}"
    return f"bin {row}"


def _ascends(numbers: Array) -> bool:
    """Whether iterations run in one direction and are all known."""
    return bool((numbers[1:] >= numbers[:-1]).all())
