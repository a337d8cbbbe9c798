"""Level of detail: minima and maxima over blocks of steps, so that a long run is drawn without reading it whole.

NaN is never filtered out: a cell that covers any NaN is NaN in both results, and so is visible at every zoom. Unknown
values are NaN too, also among whole numbers, which become floats here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.room import rows_ahead, unwritten

Array = npt.NDArray[Any]
LEVELS = (4, 16, 64, 256)
"""Steps of one cell at each stored level."""


class Pyramid:
    """Minima and maxima of a (step,) or (step, unit) array of floats at the levels above, up to date page by page.

    `gap` is the value of rows that were never updated.
    """

    def __init__(self, gap: float = np.nan) -> None:
        self._gap = gap
        self._low: dict[int, Array] = {}
        self._high: dict[int, Array] = {}
        self._defined: dict[int, int] = {}
        """Cells of each level that hold numbers or a gap; memory beyond them was never written."""
        self._rows = 0

    def update(self, first: int, stop: int, rows: int, read: Callable[[int, int], Array]) -> None:
        """Rows first … stop-1 are new; the array now has `rows` rows; `read(a, b)` gives rows a … b-1."""
        before, self._rows = self._rows, max(self._rows, rows)
        at, stop, chunk = first, min(stop, self._rows), 64 * LEVELS[-1]
        while at < stop:
            end = min(stop, at - at % chunk + chunk)
            self._update_chunk(at, end, read)
            at = end
        if 0 < before < first:  # the last cells had fewer rows, and now cover a part of the gap
            self._update_chunk(before - 1, before, read)

    def _update_chunk(self, first: int, stop: int, read: Callable[[int, int], Array]) -> None:
        """Each level from the one below it: of a few new rows only the cells that they lie in are found again."""
        finest = LEVELS[0]
        raw = read(first // finest * finest, min(-(-stop // finest) * finest, self._rows))
        self._reduce(finest, first // finest, raw, raw, finest)
        for below, level in pairwise(LEVELS):
            factor, cell = level // below, first // level
            cut = slice(cell * factor, min(-(-stop // level) * factor, self._defined[below]))
            self._reduce(level, cell, self._low[below][cut], self._high[below][cut], factor)

    def _reduce(self, level: int, first: int, low: Array, high: Array, factor: int) -> None:
        self._store(self._low, level, first, reduce_rows(low, factor, np.minimum))
        found = reduce_rows(high, factor, np.maximum)
        self._store(self._high, level, first, found)
        self._defined[level] = max(self._defined.get(level, 0), first + len(found))

    def _store(self, where: dict[int, Array], level: int, first: int, values: Array) -> None:
        needed, defined = first + len(values), self._defined.get(level, 0)
        present = where.get(level)
        if present is None or len(present) < needed:
            row_bytes = math.prod(values.shape[1:]) * values.itemsize
            room = rows_ahead(needed, 0 if present is None else len(present), row_bytes)
            grown = unwritten((room, *values.shape[1:]), values.dtype)
            if present is not None:
                grown[:defined] = present[:defined]
            where[level] = present = grown
        present[defined:first] = self._gap
        present[first:needed] = values

    @property
    def nbytes(self) -> int:
        """Bytes of all levels, as far as they are written."""
        return sum(
            values[: self._defined[level]].nbytes
            for where in (self._low, self._high)
            for level, values in where.items()
        )

    def level_for(self, rows_per_cell: float) -> int:
        """The coarsest stored level that is no coarser than the wanted cell; 1 where the raw rows are needed."""
        return max((level for level in LEVELS if level <= rows_per_cell), default=1)

    def take(self, level: int, first: int, stop: int) -> tuple[Array, Array]:
        """Cells that cover rows first … stop-1 at a stored level."""
        cut = slice(first // level, -(-stop // level))
        return self._low[level][cut], self._high[level][cut]


def with_nan(values: Array) -> Array:
    """Floats unchanged; whole numbers as floats (exact up to 2⁵³), NaN where they are masked."""
    if values.dtype.kind == "f":
        return values
    wanted = np.dtype(np.float32 if values.dtype.itemsize < 4 else np.float64)
    floats = np.ma.getdata(values).astype(wanted)
    mask = np.ma.getmask(values)
    if mask is not np.ma.nomask:
        floats[mask] = np.nan
    return floats


def reduce_rows(values: Array, factor: int, how: np.ufunc) -> Array:
    """Every `factor` rows reduced to one by minimum or maximum; the last group may be smaller.

    A reduction over a reshaped view is several times faster than `reduceat`.
    """
    if factor <= 1 or len(values) == 0:
        return values
    whole = len(values) // factor
    body: Array = how.reduce(values[: whole * factor].reshape(whole, factor, *values.shape[1:]), axis=1)
    if whole * factor == len(values):
        return body
    return np.concatenate((body, how.reduce(values[whole * factor :], axis=0, keepdims=True)))


def shrink(low: Array, high: Array, size: tuple[int, ...]) -> tuple[Array, Array]:
    """Both arrays reduced so that no axis is longer than `size` (an axis may become shorter)."""
    for axis, wanted in enumerate(size[: low.ndim]):
        factor = -(-low.shape[axis] // max(1, wanted))
        if factor > 1:
            low = np.moveaxis(reduce_rows(np.moveaxis(low, axis, 0), factor, np.minimum), 0, axis)
            high = np.moveaxis(reduce_rows(np.moveaxis(high, axis, 0), factor, np.maximum), 0, axis)
    return low, high
