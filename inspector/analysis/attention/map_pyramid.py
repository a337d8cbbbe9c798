"""Level of detail of a map along both of its axes: the largest and the mean weight of square cells.

A map of 16,000 × 16,000 weights is read in blocks of rows; what is stored are cells of `base` × `base` weights and
coarser ones, each twice as wide as those before. A cell that covers a NaN is NaN; masked keys (−∞) count neither for
the maximum nor for the mean, and a cell of nothing else is masked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
How = Literal["maximum", "mean"]
Rect = tuple[float, float, float, float]
"""(first column, first row, columns, rows) in weights."""
MOST_CELLS = 1 << 24
"""Cells of the finest level that is stored: 64 MB in half precision, for both kinds."""
BLOCK_CELLS = 1 << 22
"""Weights that are read at once."""
FEWEST = (8, 64)
"""Cells along the longer axis of the coarsest level: the fewest of short maps, and of long ones, whose blocks of rows
are as many as a cell of the coarsest level is high."""

BLOCKS, ROWS = 16, 64
"""Blocks of so many rows of cells that are counted of a map with more rows."""


class Rows(Protocol):
    """Where the weights come from."""

    shape: tuple[int, int]

    @property
    def narrow(self) -> bool:
        """Whether half precision is enough."""

    def rows(self, first: int, stop: int) -> Array:
        """Some rows, in single precision."""


@dataclass(slots=True)
class Level:
    """Cells of `factor` × `factor` weights, (rows, columns) each."""

    factor: int
    largest: Array
    mean: Array

    def of(self, how: How) -> Array:
        """The one or the other."""
        return self.largest if how == "maximum" else self.mean


class MapPyramid:
    """The levels of a map, or of a part of one that begins at `corner` (row, column)."""

    def __init__(self, shape: tuple[int, int], *, narrow: bool, signed: bool = False, base: int = 0) -> None:
        self.shape, self.signed, self.corner = shape, signed, (0, 0)
        self.base = base or base_for(shape)
        self.rows_done = 0
        """Rows that were read so far."""
        self._masked = False
        self._total, self._count = np.zeros(shape[1]), np.zeros(shape[1])
        self._by_query = np.full(shape[0], np.nan, np.float32)
        dtype = np.float16 if narrow else np.float32
        self.levels: list[Level] = []
        factor = self.base
        while True:
            size = (-(-shape[0] // factor), -(-shape[1] // factor))
            largest = np.full(size, np.nan, dtype)
            self.levels.append(Level(factor, largest, largest if factor == 1 else np.full(size, np.nan, dtype)))
            if max(size) <= min(FEWEST[1], max(FEWEST[0], max(shape) // 64)):
                break
            factor *= 2

    @property
    def complete(self) -> bool:
        """Whether all rows were read."""
        return self.rows_done >= self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all levels."""
        return sum(one.largest.nbytes + (one.mean.nbytes if one.factor > 1 else 0) for one in self.levels)

    def build(self, source: Rows, *, columns: tuple[int, int] | None = None, first: int = 0) -> Iterator[None]:
        """Read the rows of a source from `first` on, a block after the other; of `columns` only, where given."""
        coarsest = self.levels[-1].factor
        cut = slice(*(columns or (0, self.shape[1])))  # a map that goes on may have more by now
        many = max(1, BLOCK_CELLS // max(1, source.shape[1] * coarsest)) * coarsest
        for start in range(0, self.shape[0], many):
            stop = min(self.shape[0], start + many)
            self._take(start, source.rows(first + start, first + stop)[:, cut])
            self.rows_done = stop
            yield

    def _take(self, start: int, block: Array) -> None:
        """Fill the cells of some rows at every level."""
        cells = Cells(block, signed=self.signed)
        self._masked |= cells.masked
        self._sum_up(start, cells)
        factor = 1
        for level in self.levels:
            while factor < level.factor:
                cells = cells.halved()
                factor *= 2
            at = slice(start // level.factor, start // level.factor + len(cells.largest))
            level.largest[at] = cells.farthest
            if level.factor > 1:
                level.mean[at] = cells.mean

    def _sum_up(self, start: int, cells: Cells) -> None:
        """Add the rows of a block to the sums by key; rows with NaN do not count."""
        whole = np.isfinite(cells.total.sum(axis=1, dtype=np.float64))
        total, count = (cells.total, cells.count) if whole.all() else (cells.total[whole], cells.count[whole])
        self._total += total.sum(axis=0, dtype=np.float64)
        self._count += count.sum(axis=0, dtype=np.float64)
        most = cells.farthest.max(axis=1, initial=-np.inf)
        least = cells.total.min(axis=1, initial=0.0) if self.signed else most
        self._by_query[start : start + len(most)] = farther(most, least) if self.signed else most

    @property
    def mean_by_key(self) -> Array:
        """(keys,) the mean over the queries, read so far, that may attend to a key; NaN where none may."""
        with np.errstate(all="ignore"):
            found: Array = np.where(self._count > 0, self._total / self._count, np.nan)
        return found

    @property
    def largest_by_query(self) -> Array:
        """(queries,) the largest weight, or of numbers with signs the one farthest from 0, NaN where nothing is known;
        −∞ where every key is masked."""
        return self._by_query

    def level_for(self, weights_a_pixel: float) -> Level:
        """The finest level whose cells are no smaller than pixels, so that no weight falls between two of them."""
        return next((one for one in self.levels if one.factor >= weights_a_pixel * (1 - 1e-9)), self.levels[-1])

    def cells(self, seen: Rect, size: tuple[int, int], how: How) -> tuple[Array, Rect]:
        """(cells in view (row, column), the weights that they cover) for a view of so many pixels (across, down)."""
        left, top, across, down = seen
        top, left = top - self.corner[0], left - self.corner[1]
        level = self.level_for(min(across / max(1, size[0]), down / max(1, size[1])))
        f = level.factor
        rows, columns = level.largest.shape
        i, j = min(rows - 1, max(0, math.floor(top / f))), min(columns - 1, max(0, math.floor(left / f)))
        i_end = min(rows, max(i + 1, math.ceil((top + down) / f)))
        j_end = min(columns, max(j + 1, math.ceil((left + across) / f)))
        rect = (j * f + self.corner[1], i * f + self.corner[0], (j_end - j) * f, (i_end - i) * f)
        return level.of(how)[i:i_end, j:j_end], rect

    def some(self, columns: tuple[int, int], how: How) -> Array:
        """(rows, columns) of the finest cells that are stored, between two of their columns; of many rows some blocks
        at even distances."""
        cells = self.levels[0].of(how)[:, slice(*columns)]
        if len(cells) <= BLOCKS * ROWS:
            return cells
        starts = np.linspace(0, len(cells) - ROWS, BLOCKS).astype(int)
        return np.concatenate([cells[start : start + ROWS] for start in starts])

    def covers(self, seen: Rect) -> bool:
        """Whether all of a part of the map is in this one."""
        left, top, across, down = seen
        row, column = self.corner
        rows, columns = self.shape
        return row <= top and column <= left and top + down <= row + rows and left + across <= column + columns

    @property
    def extremes(self) -> tuple[float, float]:
        """(least, largest) of what was read so far and is finite; of means where the least is one. (0, 0) for none."""
        top = self.levels[-1]
        both = np.concatenate((top.largest.ravel(), top.mean.ravel())).astype(np.float32)
        finite = both[np.isfinite(both)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)

    @property
    def special(self) -> tuple[bool, bool, bool]:
        """(any NaN, any +∞, anything masked) among the rows that were read."""
        top = self.levels[-1]
        known = top.largest[: -(-self.rows_done // top.factor)]
        return bool(np.isnan(known).any()), bool(np.isposinf(known).any()), self._masked


class Cells:
    """Cells of one size of a block: the largest weight, the sum, and how many weights count."""

    __slots__ = ("count", "largest", "masked", "signed", "total")

    def __init__(self, block: Array, *, signed: bool) -> None:
        self.largest, self.signed = block, signed
        hidden = np.isneginf(block)
        self.masked = bool(hidden.any())
        self.total: Array = np.where(hidden, np.float32(0), block) if self.masked else block
        if signed:
            self.largest = self.total  # of numbers with signs a masked one would be the farthest from 0
        self.count: Array = (~hidden).astype(np.float32)

    @property
    def mean(self) -> Array:
        """Of the weights that count; −∞ where none does."""
        with np.errstate(all="ignore"):
            found: Array = np.where(self.count > 0, self.total / self.count, -np.inf)
        return found

    @property
    def farthest(self) -> Array:
        """The largest, or of numbers with signs the one farthest from 0; −∞ where no weight counts."""
        if not self.signed:
            return self.largest
        found: Array = np.where(self.count > 0, self.largest, -np.inf)
        return found

    def halved(self) -> Cells:
        """Cells twice as wide and high."""
        found = Cells.__new__(Cells)
        found.signed = self.signed
        join = farther if self.signed else np.maximum
        found.largest = _pairs(self.largest, join)
        found.total, found.count = _pairs(self.total, np.add), _pairs(self.count, np.add)
        return found


def _pairs(values: Array, join: Any) -> Array:
    """Two rows joined, then two columns; a last one without a partner stays."""
    for axis in (0, 1):
        even, odd = (values[0::2], values[1::2]) if axis == 0 else (values[:, 0::2], values[:, 1::2])
        if even.shape[axis] == odd.shape[axis]:
            values = join(even, odd)
            continue
        whole = odd.shape[axis]
        joined = join(even[:whole] if axis == 0 else even[:, :whole], odd)
        values = np.concatenate((joined, even[whole:] if axis == 0 else even[:, whole:]), axis=axis)
    return values


def farther(first: Array, second: Array) -> Array:
    """Of two differences the one farther from 0; NaN where one is."""
    with np.errstate(all="ignore"):
        found: Array = np.where(np.abs(first) >= np.abs(second), first, second)
    found[np.isnan(first)] = np.nan
    return found


def base_for(shape: tuple[int, int]) -> int:
    """Weights along a side of the finest cells that are stored of a map."""
    base = 1
    while -(-shape[0] // base) * -(-shape[1] // base) > MOST_CELLS:
        base *= 2
    return base


def built(source: Rows, *, signed: bool = False) -> MapPyramid:
    """The whole pyramid, at once."""
    pyramid = MapPyramid(source.shape, narrow=source.narrow, signed=signed)
    for _ in pyramid.build(source):
        pass
    return pyramid
