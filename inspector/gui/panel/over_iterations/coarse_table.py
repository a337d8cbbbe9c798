"""A long table of curves at a coarse level of detail, extended as the table grows.

A pyramid of minima and maxima at all levels takes seconds for 100,000 iterations of 500 parameters. A map of numbers
that are read by their size shows the largest of each cell, so one level of maxima is enough, from which coarser ones
are made; where the view is closer, the table itself is read.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import with_nan
from inspector.capture.view import View
from inspector.gui.widgets.images.quantise import extreme

Array = npt.NDArray[Any]
FACTOR = 64
"""Rows of a cell of the coarse level."""
AT_ONCE = 16 * FACTOR
"""Rows that are read at once while it is made."""


class CoarseTable:
    """Of a channel ("iteration", X) of a view."""

    def __init__(self, view: View, name: str, scale: str) -> None:
        self.view, self.name, self.scale = view, name, scale
        self._cells: list[Array] = []
        self._rows = self._count = 0
        self._revision = -1

    @property
    def rows(self) -> int:
        """Rows that were read so far, from the first on."""
        return self._rows if self._rows + FACTOR <= self._count else self._count

    @property
    def complete(self) -> bool:
        """Whether that is all."""
        return self.rows == self._count

    def update(self, seconds: float) -> None:
        """Take rows that are new, for so long; where rows that were there may have changed, all are read again."""
        count, revision = self.view.extent(self.name)[0], self.view.revision(self.name)
        if revision != self._revision and count <= self._count:
            self._cells, self._rows = [], 0
        self._count, self._revision = count, revision
        end = time.monotonic() + seconds
        while self._rows + FACTOR <= count and time.monotonic() < end:
            stop = min(self._rows + AT_ONCE, count - count % FACTOR)
            block = with_nan(self.view.block(self.name, -1, (slice(self._rows, stop),)))
            self._cells.append(self._largest(block, FACTOR))
            self._rows = stop

    def _largest(self, rows: Array, factor: int) -> Array:
        """Of every so many rows the number that a cell shows; NaN where one is NaN."""
        starts = np.arange(0, len(rows), factor)
        high = np.maximum.reduceat(rows, starts, axis=0)
        if self.scale not in ("diverging", "ratio"):
            return high
        return extreme(np.minimum.reduceat(rows, starts, axis=0), high, self.scale)

    def sample(self) -> Array:
        """(cells, X) of what was read, for limits of colours."""
        tail = with_nan(self.view.block(self.name, -1, (slice(self._rows, self.rows),)))
        return np.concatenate([*self._cells, tail]) if self._cells else tail

    def look(self, cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        """What a map of `cells` columns shows of rows first … stop; NaN where they were not read yet."""
        (first, stop), per_cell = cut, (cut[1] - cut[0]) / max(1, cells)
        if per_cell < FACTOR:
            rows = with_nan(self.view.block(self.name, -1, (slice(first, stop),)))
            found = self._largest(rows, max(1, int(per_cell))) if per_cell >= 2 else rows
            return found, found
        level = self.sample()[first // FACTOR :]
        wanted = -(-stop // FACTOR) - first // FACTOR
        if len(level) < wanted:
            level = np.concatenate((level, np.full((wanted - len(level), level.shape[1]), np.nan, level.dtype)))
        found = self._largest(level[:wanted], max(1, int(per_cell / FACTOR)))
        return found, found
