"""From a channel of a capture to the data of a plot item: overviews, levels, curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, Comparison
from inspector.capture.pyramid import reduce_rows, with_nan
from inspector.gui.state.step_range import room_for
from inspector.gui.widgets.images.heatmap import Changes
from inspector.gui.widgets.images.quantise import Levels, levels_of
from inspector.gui.widgets.plots.stepplot import POINTS, decimated
from inspector.records import Channel

Array = npt.NDArray[Any]
GLANCE = 64
SMALL_NUMBERS = 8 << 20
"""Numbers of an array that may be kept whole while it is drawn."""


def overview_of(capture: Capture, name: str, frame: int) -> Callable[[tuple[int, int], int], tuple[Array, Array]]:
    """The overview of a heatmap: minima and maxima of a range of steps in at most so many cells, every unit."""
    units = capture.extent(name, frame)[1]

    def look(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        return capture.overview(name, frame, region=(slice(*cut),), size=(cells, units))

    return look


def changes_of(capture: Capture, name: str, frame: int) -> Changes | None:
    """Which steps of a channel are new since it was drawn last; None where that is not known (a comparison)."""
    shown: Any = capture
    if isinstance(shown, Comparison):  # a difference passes on what it has not, also the `since` of its capture
        return None
    since = getattr(capture, "since", None)
    return None if since is None else lambda seen: since(name, frame, seen)


def steady(levels: Levels) -> Levels:
    """The same limits on a grid of at most a twentieth of what they span, outward: while a run goes on its numbers
    change in the last digits with every page, and what is drawn already keeps its colours; a run that has ended has
    the same ones, whenever it is drawn.

    Counter-example: limits that lie at a point of the grid may go to and fro between two of them; all is drawn again
    then.
    """
    span = levels.high - levels.low
    if not np.isfinite(span) or span <= 0:
        return levels
    most = span / 20
    decade = 10.0 ** np.floor(np.log10(most))
    unit = max(step * decade for step in (1, 2, 5) if step * decade <= most * (1 + 1e-9))
    low, high = np.floor(levels.low / unit + 1e-6) * unit, np.ceil(levels.high / unit - 1e-6) * unit
    return replace(levels, low=float(low), high=float(high))


def glance(capture: Capture, channel: Channel, frame: int) -> tuple[Levels, bool, bool]:
    """(levels, any NaN, any infinity) from a coarse overview of the whole channel;
    unknown values do not count as NaN. While a run goes on only what is new is looked at, where that is enough."""
    growing = getattr(capture, "stop", None) is None and channel.limits is None
    if not growing or type(capture) is not Capture:  # a comparison does not say what is new
        return _whole(capture, channel, frame, growing=False)
    looked = _LOOKED.setdefault(capture, {})
    known, rows = looked.get((channel.name, frame)), capture.extent(channel.name, frame)[0]
    found = known.grown(capture, channel, frame, rows) if known is not None else None
    if found is None:
        _, seen = capture.since(channel.name, frame)
        levels, nan, infinite = _whole(capture, channel, frame, growing=True)
        found = Looked(levels, nan, infinite, rows, rows, seen)
    looked[channel.name, frame] = found
    return found.levels, found.nan, found.infinite


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in the first `rows` rows of a channel that grows; `whole`: how many there were when all of them
    were looked at."""

    levels: Levels
    nan: bool
    infinite: bool
    rows: int
    whole: int
    seen: Any

    def grown(self, capture: Capture, channel: Channel, frame: int, rows: int) -> Looked | None:
        """The same with what is new; None where all has to be looked at: rows that were seen are others now, the axis
        of steps makes room for more (then the map is drawn again anyway), or more lie beyond than limits leave out.

        Counter-example: numbers that become smaller have limits that are too wide until a third more have come.
        """
        first, seen = capture.since(channel.name, frame, self.seen)
        if first < self.rows or room_for(rows) != room_for(self.whole) or capture.holes(channel.name, frame):
            return None
        if rows == self.rows:
            return replace(self, seen=seen)
        size = (GLANCE, *capture.extent(channel.name, frame)[1:])
        low, high = capture.overview(channel.name, frame, region=(slice(self.rows, rows),), size=size)
        beyond, nan, infinite = self._beyond(low, high)
        share = (self.levels.clipped * self.rows + beyond * (rows - self.rows)) / rows
        if share > MOST_BEYOND:
            return None
        levels = replace(self.levels, clipped=share, full=_wider(self.levels, low, high))
        return Looked(levels, self.nan or nan, self.infinite or infinite, rows, self.whole, seen)

    def _beyond(self, low: Array, high: Array) -> tuple[float, bool, bool]:
        """Of new cells: (share beyond the limits, any NaN, any infinity)."""
        with np.errstate(all="ignore"):
            ends = (np.log10(low), np.log10(high)) if self.levels.log else (low, high)
            outside = sum(int(np.count_nonzero((one < self.levels.low) | (one > self.levels.high))) for one in ends)
        total = float(low.sum()) + float(high.sum())  # not finite where any number is not
        if np.isfinite(total):
            return outside / max(1, 2 * low.size), False, False
        infinite = bool(np.isinf(low).any() or np.isinf(high).any())
        return outside / max(1, 2 * low.size), bool(np.isnan(low).any()), infinite


def _wider(levels: Levels, low: Array, high: Array) -> tuple[float, float] | None:
    """The limits of all numbers, with those of new cells."""
    more = levels_of(np.stack((low, high)), levels.scale, None).full
    if more is None or levels.full is None:
        return more or levels.full
    return min(levels.full[0], more[0]), max(levels.full[1], more[1])


_LOOKED: WeakKeyDictionary[Capture, dict[tuple[str, int], Looked]] = WeakKeyDictionary()
MOST_BEYOND = 0.015
"""Share of numbers beyond the limits of a growing channel above which they are found again; found, they leave out 1 %
of them at most."""


def _whole(capture: Capture, channel: Channel, frame: int, *, growing: bool) -> tuple[Levels, bool, bool]:
    """What `glance` returns. Of a channel that grows, the share beyond the limits is that before these were rounded: it
    says when to look for new ones."""
    size = (GLANCE, *capture.extent(channel.name, frame)[1:])
    low, high = capture.overview(channel.name, frame, size=size)
    both = np.stack((low.reshape(-1), high.reshape(-1)), axis=-1)
    both = np.concatenate((both, *_of_the_other(capture, channel)))
    levels = levels_of(both, channel.scale, channel.limits)
    if channel.limits is None:
        levels = steady(levels) if growing else _counted(steady(levels), both)
    nan = np.isnan(low).reshape(len(low), -1).any(axis=1)
    if nan.any():
        nan &= ~_beside_gaps(capture, channel.name, frame, len(low))
    return levels, bool(nan.any()), bool(np.isinf(both).any())


def _counted(levels: Levels, values: Array) -> Levels:
    """With the share of finite numbers that lie beyond its limits, which may be wider than those that left some out."""
    if levels.clipped <= 0:
        return levels
    with np.errstate(all="ignore"):
        ends = np.log10(values) if levels.log else values
    ends = ends[np.isfinite(ends)]
    beyond = np.count_nonzero((ends < levels.low) | (ends > levels.high))
    return replace(levels, clipped=float(beyond / max(1, ends.size)))


def of_the_other(capture: Any, channel: Channel, region: tuple[slice, ...] = ()) -> Array:
    """(n,) the numbers of the same channel of a run that is shown beside this one, to be within the range of colours
    too: equal colours then mean equal numbers. Of another unit they would mean nothing. Empty where there is none."""
    beside = _other(capture, channel)
    if beside is None:
        return np.zeros(0)
    return np.ma.getdata(beside.view.block(channel.name, beside.frame, region)).reshape(-1).astype(np.float64)


def _of_the_other(capture: Any, channel: Channel) -> list[Array]:
    """The same by a coarse overview: [(n, 2) least and largest numbers]."""
    beside = _other(capture, channel)
    if beside is None:
        return []
    size = (GLANCE, *beside.view.extent(channel.name, beside.frame)[1:])
    low, high = beside.view.overview(channel.name, beside.frame, size=size)
    return [np.stack((low.reshape(-1), high.reshape(-1)), axis=-1)]


def _other(capture: Any, channel: Channel) -> Any:
    beside = getattr(capture, "beside", None)
    if beside is None or channel.name not in beside.view.channels:
        return None
    there = beside.view.revision(channel.name, beside.frame)
    return beside if there and beside.view.channels[channel.name].unit == channel.unit else None


def _beside_gaps(capture: Capture, name: str, frame: int, cells: int) -> npt.NDArray[np.bool_]:
    """Which of so many cells along the steps may cover something that is not known, so that their NaN has no meaning.

    A cell that also has a NaN of the model is skipped with them; the map itself still shows that NaN.
    """
    steps, marked = capture.extent(name, frame)[0], np.zeros(cells, dtype=np.bool_)
    holes = capture.holes(name, frame)
    most = steps / max(1, cells - 1)  # steps of a cell, the last of which may be smaller
    for box in (*holes.missing, *holes.damaged):
        first, stop = box[0]
        marked[max(0, int(first / most) - 1) : int(stop * cells / max(1, steps)) + 2] = True
    return marked


def drawable(values: Array) -> Array:
    """Numbers to be drawn: whole numbers that are masked somewhere as floats, NaN there, never 0."""
    return with_nan(values) if np.ma.isMaskedArray(values) else values


def stride_of(capture: Capture, name: str, frame: int) -> int:
    """n where only every n-th step of a channel was computed (the scalar `NAME_every`), else 1."""
    found = {scalar.frame: scalar.value for scalar in capture.scalars if scalar.name == f"{name}_every"}
    if not found:
        return 1
    return max(1, int(found.get(frame, found[max(found)] if frame < 0 else 1.0)))


def spaced(
    capture: Capture, name: str, frame: int, cut: tuple[int, int], every: int, cells: int
) -> tuple[Array, Array, Array]:
    """(steps, minima, maxima) of the steps that were computed, every n-th, thinned to at most `cells` rows.

    An overview would not show them: its cells are NaN where any of their steps is.
    """
    first, stop = -(-cut[0] // every) * every, cut[1]
    within, extent = slice(first, max(first, stop)), capture.extent(name, frame)
    small = math.prod(extent) <= SMALL_NUMBERS  # an array is kept and grows with the run: a block is read anew
    found = capture.array(name, frame)[within] if small else capture.block(name, frame, (within,))
    rows = with_nan(found)[::every]
    factor = max(1, -(-len(rows) // cells))
    steps = first + every * factor * np.arange(-(-len(rows) // factor))
    return steps.astype(np.float64), reduce_rows(rows, factor, np.minimum), reduce_rows(rows, factor, np.maximum)


def line_of(capture: Capture, name: str, frame: int, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """(x, y) of a (step,) channel over the steps in view, thinned to what a screen can show."""
    steps = capture.extent(name, frame)[0]
    first, stop = max(0, int(bounds[0])), min(steps, int(bounds[1]) + 2)
    if stop <= first:
        return np.zeros(0), np.zeros(0)
    every = stride_of(capture, name, frame)
    if every > 1:
        x, low, high = spaced(capture, name, frame, (first, stop), every, POINTS // 2)
        return np.repeat(x, 2), np.stack((low, high), 1).astype(np.float64).reshape(-1)
    low, high = capture.overview(name, frame, region=(slice(first, stop),), size=(POINTS // 2,))
    width = max(1.0, (stop - first) / max(1, len(low)))
    return decimated(low, high, float(first), width)
