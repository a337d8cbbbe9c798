"""The means of the cells of a map with more steps than pixels, from sums of 16 steps that are kept.

A cell in which any number is NaN or infinite is so itself: nothing is averaged away that was wrong.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """The sums of every BASE steps of the first `rows` steps of a channel, and what of it was seen."""

    values: Array
    rows: int = 0
    seen: Any = None


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
        if factor % BASE == 0 and first % BASE == 0:
            found = _from_sums(_sums(capture, name, frame).values, first, stop, factor)
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


def _from_sums(sums: Array, first: int, stop: int, factor: int) -> Array:
    part = sums[first // BASE : -(-stop // BASE)]
    with np.errstate(all="ignore"):
        total = reduce_rows(part, factor // BASE, np.add)
        return total / _counts(stop - first, factor, len(total))[:, None]


def _counts(rows: int, factor: int, cells: int) -> npt.NDArray[np.int64]:
    """How many steps each of some cells has: the last one may have fewer."""
    return np.minimum(factor, rows - factor * np.arange(cells))


def _sums(capture: Any, name: str, frame: int) -> _Sums:
    """The sums of a channel, with what is new since they were asked for last."""
    rows, units = capture.extent(name, frame)[:2]
    known = _KNOWN.setdefault(capture, _Known()).sums
    before = known.get((name, frame))
    since = getattr(capture, "since", None)
    if since is None:
        changed, seen = 0, capture.revision(name, frame)
        if before is not None and (before.seen, before.rows) == (seen, rows):
            return before
    else:
        changed, seen = since(name, frame, before.seen if before is not None else None)
    at = min(changed, before.rows) // BASE * BASE if before is not None else 0
    values = np.empty((-(-rows // BASE), units))
    if before is not None:
        if at >= rows == before.rows:
            before.seen = seen
            return before
        values[: at // BASE] = before.values[: at // BASE]
    step = max(BASE, CHUNK // max(1, units) // BASE * BASE)
    for first in range(at, rows, step):
        stop = min(rows, first + step)
        part = _read(capture, name, frame, first, stop).astype(np.float64)
        with np.errstate(all="ignore"):
            values[first // BASE : -(-stop // BASE)] = reduce_rows(part, BASE, np.add)
    found = known[name, frame] = _Sums(values, rows, seen)
    return found
