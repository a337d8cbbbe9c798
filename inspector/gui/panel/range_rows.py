"""The rows of the table of a range of steps: their names, their cells on screen, and the text that is copied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inspector.analysis.step_statistics import COLUMNS, Ranges, Statistics, step_axis
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.sorted_table import Cell, Rows
from inspector.records import Channel

Array = npt.NDArray[np.float64]
MOST_ROWS = 20_000
MOST_RANGES = 3
"""Parts of a range that are named one by one."""
NO_NUMBER = "–"
COUNTS = ("NaN", "∞", "not there")
"""Columns that are there where one of their numbers is not 0."""
TIPS = {
    "in": "The layer, or another part of the model",
    "first": "The number at the first step of the range",
    "last": "The number at its last step",
    "change": "last − first",
    "least": "The smallest finite number in the range",
    "largest": "The largest finite number in the range",
    "mean": "The mean of the finite numbers, summed as float64",
    "sd": "The standard deviation of the finite numbers: √ mean (x − mean)²",
    "NaN": "How many numbers are NaN; least, largest, mean and sd leave them out",
    "∞": "How many numbers are ∞ or −∞; least, largest, mean and sd leave them out",
    "not there": "How many numbers are not written yet, or damaged",
}


@dataclass(slots=True)
class Job:
    """One reading: written by the thread that does it, read by the window."""

    ranges: Ranges = ()
    whose: str = ""
    """Who chose the range: "in view", "found by Ask", or "" where it was typed."""
    channels: tuple[Channel, ...] = ()
    found: list[tuple[Channel, Statistics]] = field(default_factory=list)
    done: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One curve of a channel, and its numbers in the order of COLUMNS."""

    channel: Channel
    curve: int
    numbers: tuple[float, ...]
    ends: tuple[bool, bool]

    @property
    def dim(self) -> str:
        """What its number counts; "" for the only curve of a channel."""
        axis = step_axis(self.channel)
        return next((dim for at, dim in enumerate(self.channel.dims) if at != axis), "")

    @property
    def name(self) -> str:
        """ "forget gate 3", "entropy head 2"."""
        dim, labels = self.dim, self.channel.labels.get(self.dim, ())
        if not dim:
            return self.channel.titled
        number = labels[self.curve] if self.curve < len(labels) else str(self.curve)
        return f"{self.channel.titled} {'' if dim == 'unit' or labels else f'{dim} '}{number}"

    def cell(self, column: str) -> Cell:
        """A number, "–" where there is none: NaN is a number that a model made."""
        value = self.numbers[COLUMNS.index(column)]
        made = {"first": self.ends[0], "last": self.ends[1], "change": all(self.ends)}.get(column, False)
        return NO_NUMBER if math.isnan(value) and not made else value


def lines_of(found: Iterable[tuple[Channel, Statistics]]) -> list[Line]:
    """A row for each curve, in the order of the channels."""
    lines: list[Line] = []
    for channel, statistics in found:
        ends = statistics.ends.T.tolist()
        for curve, numbers in enumerate(statistics.table()[: MOST_ROWS - len(lines)].tolist()):
            lines.append(Line(channel, curve, tuple(numbers), (ends[curve][0], ends[curve][1])))
    return lines


def columns_of(lines: Sequence[Line]) -> list[str]:
    """Those with something in them."""
    counted = [name for name in COUNTS if any(line.numbers[COLUMNS.index(name)] for line in lines)]
    return [name for name in COLUMNS if name not in COUNTS or name in counted]


def rows_of(lines: Sequence[Line]) -> Rows:
    """What the table shows."""
    columns = columns_of(lines)
    bad = {len(columns[: columns.index(name)]) + 1 for name in COUNTS[:2] if name in columns}
    cells = [(clean(line.channel.place), *(line.cell(name) for name in columns)) for line in lines]
    marked = frozenset((row, column) for row, own in enumerate(cells) for column in bad if own[column])
    headings = ("in", *(name.replace(" ", "\n") for name in columns))
    return Rows([line.name for line in lines], headings, cells, [TIPS[name] for name in ("in", *columns)], marked)


def text_of(lines: Sequence[Line], order: Sequence[int]) -> str:
    """All rows in an order, with all digits, separated by tabs."""
    columns = columns_of(lines)
    told = ["\t".join(("curve", "in", *columns))]
    for row in order:
        line = lines[row]
        numbers = (value if isinstance(value, str) else _digits(value) for value in map(line.cell, columns))
        told.append("\t".join((clean(line.name), clean(line.channel.place), *numbers)))
    return "\n".join(told)


def _digits(value: float) -> str:
    """As programs read it."""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)


def range_in_words(ranges: Ranges) -> str:
    """ "12–57", "12–57, 80", "5 ranges"."""
    if len(ranges) > MOST_RANGES:
        return f"{len(ranges):,} ranges"
    return ", ".join(f"{first:,}–{last:,}" if last > first else f"{first:,}" for first, last in ranges)


def as_typed(ranges: Ranges) -> str:
    """As a person types them: "12-57, 80"."""
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges)


def steps_in(ranges: Ranges) -> int:
    """How many steps."""
    return sum(last - first + 1 for first, last in ranges)
