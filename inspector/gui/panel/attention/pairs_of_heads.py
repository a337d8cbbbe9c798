"""The divergence of every pair of heads of one attention as a matrix, beside the table of heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.panel.base import measured
from inspector.gui.panel.exact import exact_at
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.head_map import HeadMap
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
AXIS = 42.0
"""Pixels of width of the axis of a matrix: numbers of heads have two digits, rarely three."""
Pair = tuple[int, int]
"""(row, column): two heads."""


class PairsOfHeads:
    """Heads across and down. `map` is the item to place in a figure."""

    def __init__(self, theme: Theme) -> None:
        self.map = HeadMap(theme)
        self.map.reads_first = True
        self.map.profiles = False
        self.map.plot.label("head", "other head")
        self.channel: Channel | None = None
        self.values: Array = np.zeros((0, 0))
        self._drawn: Any = None

    def show(self, view: Any, frame: int, channel: Channel | None) -> None:
        """The pairs of an attention, or none."""
        self.channel = channel
        self.map.setVisible(channel is not None)
        if channel is None:
            return
        values = np.ma.filled(view.array(channel.name, frame).astype(np.float64), np.nan)
        gaps = gaps_of(view, channel.name, frame, x=1, y=0)
        rows, columns = values.shape
        self.values, count = values, len(values)
        nan = bool(np.isnan(values).any()) and not gaps
        self.map.show_map(
            lambda _seen, _size: (values, (0.0, 0.0, float(columns), float(rows))), (columns, rows),
            levels_of(channel, values), channel.unit,
            revision=(channel.name, frame, view.revision(channel.name, frame)), special=(nan, False), gaps=gaps,
            anew=self._drawn != (channel.name, count),
        )  # fmt: skip
        self._drawn = (channel.name, count)
        self.map.name((), ())  # heads are numbers: as names they would be written downwards where they have no room
        self.map.axis_width = AXIS
        self.map.place()

    def mark(self, view: Any, frame: int, pair: Pair | None) -> None:
        """Two heads as a row and a column, and what is known of them."""
        if self.channel is None:
            return
        self.map.show_cursor(*(pair or (None, None)))
        name = f"{clean(self.channel.title)}, {clean(self.channel.place)}"
        if pair is None or max(pair) >= len(self.values):
            self.map.set_heading(name)
            return
        value, unit = float(self.values[pair]), self.channel.unit
        read = measured(exact_at(view, self.channel.name, frame, *pair), unit)  # what is not known says why
        if np.isfinite(value):
            read = f"{short(value)} {'' if unit == '1' else unit}".rstrip()
        self.map.set_heading(f"heads {pair[0]} and {pair[1]}: {read}   {name}")

    def most_alike(self, head: int) -> Pair | None:
        """A head and the other one from which it diverges least."""
        if head >= len(self.values):
            return None
        apart = self.values[head].copy()
        apart[head] = np.nan
        return (head, int(np.nanargmin(apart))) if np.isfinite(apart).any() else None

    def pair_at(self, x: float, y: float) -> Pair | None:
        """The two heads at a position of the plot."""
        if np.isnan(x) or np.isnan(y) or not len(self.values):
            return None
        row, column = round(y), round(x)
        inside = 0 <= row < len(self.values) and 0 <= column < self.values.shape[1]
        return (row, column) if inside else None


def levels_of(channel: Channel, values: Array) -> Levels:
    """From 0 to the largest that a divergence can be, so that layers are compared; differences to both sides of 0."""
    finite = values[np.isfinite(values)]
    most = float(np.abs(finite).max(initial=0.0)) or 1.0
    if channel.scale == "diverging" or bool((finite < 0).any()):
        return Levels(-most, most, "diverging")
    return Levels(0.0, most if channel.limits is None else channel.limits[1])
