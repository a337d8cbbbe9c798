"""The means of the cells of a map with more steps than pixels, from sums of 16 steps that are kept.

A cell in which any number is NaN or infinite is so itself: nothing is averaged away that was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import reduce_rows, with_nan

Array = npt.NDArray[Any]
BASE = 16
"""Steps of a kept sum."""
CHUNK = 1 << 22
"""Numbers that are read at a time."""
MOST = 1 << 28
"""Numbers of a channel of which means are found; reading more would hold the window for seconds."""


@dataclass
class _Sums:
    """The sums of every BASE steps of a channel, as far as they were asked for.

    Attributes:
        values: (sum, unit); known: which of them are found; rows: steps that the channel had then.
        seen: what of the channel was seen.
    """

    values: Array
    known: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    rows: int = 0
    seen: Any = None

    def make_room(self, needed: int) -> None:
        """Room for so many sums, and for as many again where there is not enough: a run that goes on adds often."""
        had = len(self.values)
        if needed > had:
            room = max(needed, min(2 * had, 2 * needed))
            values, known = np.empty((room, *self.values.shape[1:])), np.zeros(room, np.bool_)
            values[:had], known[:had] = self.values, self.known
            self.values, self.known = values, known

    def forget_from(self, step: int) -> None:
        """The numbers from a step on are others now."""
        self.known[step // BASE :] = False

    def unknown(self, first: int, stop: int, most: int) -> Iterator[tuple[int, int]]:
        """(first, stop) of the sums of a range that are not found yet, `most` at a time."""
        missing = first + np.flatnonzero(~self.known[first:stop])
        for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1) if len(missing) else ():
            for at in range(int(run[0]), int(run[-1]) + 1, most):
                yield at, min(at + most, int(run[-1]) + 1)


@dataclass
class _Known:
    sums: dict[tuple[str, int], _Sums] = field(default_factory=dict)


_KNOWN: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()


def has_means(capture: Any, name: str, frame: int) -> bool:
    """Whether a channel is small enough for means."""
    rows, units = capture.extent(name, frame)[:2]
    return bool(rows * units <= MOST)


def mean_overview(capture: Any, name: str, frame: int) -> Callable[[tuple[int, int], int], tuple[Array, Array]]:
    """The overview of a heatmap (step, unit) by means: (cell, unit) twice, of at most so many cells of a range."""

    def look(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        first, stop = cut
        factor = max(1, -(-(stop - first) // max(1, cells)))
        ends = stop % BASE == 0 or stop >= capture.extent(name, frame)[0]  # else the last sum has steps of others
        if factor % BASE == 0 and first % BASE == 0 and ends:
            found = _from_sums(_sums(capture, name, frame, first, stop), stop - first, factor)
        else:
            found = _means(_read(capture, name, frame, first, stop), factor)
        return found, found

    return look


def _read(capture: Any, name: str, frame: int, first: int, stop: int) -> Array:
    return with_nan(capture.block(name, frame, (slice(first, stop),)))


def _means(rows: Array, factor: int) -> Array:
    if factor == 1:
        return rows
    with np.errstate(all="ignore"):
        total = reduce_rows(rows.astype(np.float64), factor, np.add)
        return total / _counts(len(rows), factor, len(total))[:, None]


def _from_sums(sums: Array, rows: int, factor: int) -> Array:
    with np.errstate(all="ignore"):
        total = reduce_rows(sums, factor // BASE, np.add)
        return total / _counts(rows, factor, len(total))[:, None]


def _counts(rows: int, factor: int, cells: int) -> npt.NDArray[np.int64]:
    """How many steps each of some cells has: the last one may have fewer."""
    return np.minimum(factor, rows - factor * np.arange(cells))


def _sums(capture: Any, name: str, frame: int, first: int, stop: int) -> Array:
    """(sum, unit) the sums of the steps of a range that begins with one of them; what is not known yet is read."""
    rows, units = capture.extent(name, frame)[:2]
    sums = _KNOWN.setdefault(capture, _Known()).sums
    found = sums.setdefault((name, frame), _Sums(np.empty((0, units))))
    if found.values.shape[1] != units:  # wider than before: none of them holds
        found = sums[name, frame] = _Sums(np.empty((0, units)))
    found.make_room(-(-rows // BASE))
    found.forget_from(min(found.rows if found.rows < rows else rows, _unchanged(capture, name, frame, found)))
    found.rows = rows
    begin, end = first // BASE, -(-stop // BASE)
    for low, high in found.unknown(begin, end, max(1, CHUNK // max(1, units) // BASE)):
        part = _read(capture, name, frame, low * BASE, min(rows, high * BASE)).astype(np.float64)
        with np.errstate(all="ignore"):
            found.values[low:high] = reduce_rows(part, BASE, np.add)
        found.known[low:high] = True
    return found.values[begin:end]


def _unchanged(capture: Any, name: str, frame: int, found: _Sums) -> int:
    """How many of the first steps are as they were when their sums were found."""
    since = getattr(capture, "since", None)
    if since is not None:
        changed, found.seen = since(name, frame, found.seen)
        return int(changed)
    before, found.seen = found.seen, capture.revision(name, frame)
    return found.rows if before == found.seen else 0
