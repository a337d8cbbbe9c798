"""The points of one series that grows, with a coarse level of detail and what no line can show: drawing 100,000 points
again for each new one would take longer than a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.room import unwritten
from inspector.gui.widgets.charts.series import ABOVE, BELOW, NAN, NOT_POSITIVE, Beyond, Floats, apart

Bools = npt.NDArray[np.bool_]
CELL = 32
"""Points of a cell of the coarse level."""
OPEN = 1024
"""Newest points that are read again each time: rows of a table arrive column by column, so that a cell of a row that is
there may come later."""
OWN_MEMORY = 1 << 17
"""Bytes of an array from which it has memory of its own."""
LEVEL_FROM = 40_000
"""Points in view from which the coarse level is drawn."""


class LongSeries:
    """x, y (n,), known (n,), kept where x is finite: where the iteration is not known a value has no place."""

    def __init__(self) -> None:
        self._x, self._y, self._known = np.zeros(0), np.zeros(0), np.zeros(0, np.bool_)
        self._count = self._settled = 0
        self.rows = 0
        """Rows of the source that are settled: those after it are to be given to `update`."""
        self._low, self._high, self._cells = np.zeros(0), np.zeros(0), 0
        self._ascending = True
        self._beyond: dict[str, list[Floats]] = {}
        self._counts: dict[str, int] = {}
        self._span = (np.inf, -np.inf)

    @classmethod
    def of(cls, x: Floats, y: Floats, known: Bools | None = None) -> LongSeries:
        """One of these points."""
        made = cls()
        made.update(x, y, np.ones(len(x), np.bool_) if known is None else known)
        return made

    @property
    def x(self) -> Floats:
        """(n,) places."""
        return self._x[: self._count]

    @property
    def y(self) -> Floats:
        """(n,) values."""
        return self._y[: self._count]

    @property
    def known(self) -> Bools:
        """(n,) which values were logged."""
        return self._known[: self._count]

    def update(self, x: Floats, y: Floats, known: Bools, kept: Bools | None = None) -> None:
        """The points from row `rows` of the source on; those before stay. Rows that are not `kept` are no points: a
        validation loss is logged at few of the rows of its table, and its points are joined by a line."""
        settle = max(0, (len(x) - OPEN) // CELL * CELL)
        for cut, settled in ((slice(0, settle), True), (slice(settle, None), False)):
            placed = np.isfinite(x[cut]) if kept is None else np.isfinite(x[cut]) & kept[cut]
            self._put(x[cut][placed], y[cut][placed], known[cut][placed], settled=settled)
        self.rows += settle

    def _put(self, x: Floats, y: Floats, known: Bools, *, settled: bool) -> None:
        first = self._settled
        need = first + len(x)
        if need > len(self._x):
            room = max(need, 2 * len(self._x), 4 * OPEN)
            self._x, self._y, self._known = (_longer(one, room) for one in (self._x, self._y, self._known))
        self._x[first:need], self._y[first:need], self._known[first:need] = x, y, known
        self._count = need
        if settled:
            self._settle(first, need)

    def _settle(self, first: int, stop: int) -> None:
        """These points do not change any more: extend what is derived from them."""
        self._settled = stop
        if stop == first:
            return
        x, y = self._x[max(0, first - 1) : stop], self._y[first:stop]
        self._ascending &= bool((x[1:] >= x[:-1]).all())
        finite = np.where(np.isfinite(y), y, np.nan)
        if not np.isnan(finite).all():
            self._span = (min(self._span[0], float(np.nanmin(finite))), max(self._span[1], float(np.nanmax(finite))))
        for sort, found in _sorts(y, self._known[first:stop]).items():
            if found.any():
                self._counts[sort] = self._counts.get(sort, 0) + int(found.sum())
                self._beyond.setdefault(sort, []).append(apart(self._x[first:stop][found]))
        self._extend_cells()

    def _extend_cells(self) -> None:
        start, stop = self._cells * CELL, self._settled // CELL * CELL
        if stop <= start:
            return
        rows = self._y[start:stop].reshape(-1, CELL)
        finite = np.where(np.isfinite(rows), rows, np.nan)
        count = stop // CELL
        if count > len(self._low):
            self._low, self._high = (_longer(one, 2 * count) for one in (self._low, self._high))
        self._low[self._cells : count] = np.fmin.reduce(finite, axis=1)
        self._high[self._cells : count] = np.fmax.reduce(finite, axis=1)
        self._cells = count

    # -- what is drawn

    @property
    def span(self) -> tuple[float, float]:
        """(least, greatest) finite value; (inf, −inf) where there is none."""
        tail = self._y[self._settled : self._count]
        tail = tail[np.isfinite(tail)]
        if not len(tail):
            return self._span
        return min(self._span[0], float(tail.min())), max(self._span[1], float(tail.max()))

    @property
    def ends(self) -> tuple[float, float] | None:
        """(first, last) place; None where there is none."""
        if not self._count:
            return None
        if self._ascending:
            newest = self._x[self._settled : self._count]
            last = float(newest.max()) if len(newest) else float(self._x[self._count - 1])
            return float(min(self._x[0], newest.min() if len(newest) else np.inf)), max(last, float(self._x[0]))
        return float(self.x.min()), float(self.x.max())

    def seen(self, low: float, high: float) -> tuple[Floats, Floats]:
        """The points of a range and one on each side, by their cells where they are very many; values that are not
        finite are NaN. All of them where x does not run in one direction."""
        first, stop = 0, self._count
        if self._ascending:
            first = max(0, int(np.searchsorted(self.x, low, "left")) - 1)
            stop = min(self._count, int(np.searchsorted(self.x, high, "right")) + 1)
        if stop - first < LEVEL_FROM:
            y = self._y[first:stop]
            return self._x[first:stop], np.where(np.isfinite(y), y, np.nan)
        cells = slice(first // CELL, min(self._cells, -(-stop // CELL)))
        rest = slice(min(stop, cells.stop * CELL), stop)
        starts = np.arange(cells.start, cells.stop) * CELL
        x = np.stack((self._x[starts], self._x[starts + CELL // 2]), 1).reshape(-1)
        y = np.stack((self._low[cells], self._high[cells]), 1).reshape(-1)
        tail = self._y[rest]
        return np.concatenate((x, self._x[rest])), np.concatenate((y, np.where(np.isfinite(tail), tail, np.nan)))

    def beyond(self, *, log: bool) -> Beyond:
        """The points that were logged and that no line can show."""
        newest = slice(self._settled, self._count)
        places, counts = {sort: list(found) for sort, found in self._beyond.items()}, dict(self._counts)
        for sort, found in _sorts(self._y[newest], self._known[newest]).items():
            if found.any():
                counts[sort] = counts.get(sort, 0) + int(found.sum())
                places.setdefault(sort, []).append(self._x[newest][found])
        wanted = [
            sort for sort in (NAN, ABOVE, BELOW, NOT_POSITIVE) if sort in counts and (log or sort != NOT_POSITIVE)
        ]
        return Beyond(
            {sort: apart(np.concatenate(places[sort])) for sort in wanted}, {sort: counts[sort] for sort in wanted}
        )


def _sorts(y: Floats, known: Bools) -> dict[str, Bools]:
    with np.errstate(invalid="ignore"):
        below = np.isneginf(y)
        return {NAN: np.isnan(y) & known, ABOVE: np.isposinf(y), BELOW: below, NOT_POSITIVE: (y <= 0) & ~below}


def _longer(values: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """The values with room behind them: memory that nothing was written to yet takes none."""
    found = unwritten((room,), values.dtype, OWN_MEMORY)
    found[: len(values)] = values
    return found
