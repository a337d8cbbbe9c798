"""Products of step Jacobians from many starts at once, in one pass over the steps.

A product M = J_{k+ℓ} … J_{k+1} is carried as its action on directions (all of them where that is cheap: it is then
exact), at one size, with the logarithm of what was divided out beside it. Several sets of starts are moved by one push
through each J. Letters: t step, n start, p direction, s state entry, ℓ lag, m steps of a piece.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.analyses.directions import Push, SeenSpread, forward, frobenius_norms
from inspector.engine.cells.base import StepBlock
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS
from inspector.engine.trace.trace import Recurrence

PIECE_BYTES = 1 << 22
"""Rows of some steps that are kept to be looked at together: then the cost is their arithmetic, not the calls."""


class Starts:
    """Processing steps k, ascending, from which products over at most `lags` steps begin."""

    def __init__(self, steps: Sequence[int], lags: int) -> None:
        self.steps, self.lags = list(steps), lags
        self.tensor = torch.tensor(self.steps)

    def active(self, first: int, stop: int) -> slice:
        """Numbers of the starts whose products any of the steps first … stop-1 continues."""
        begin = bisect_left(self.steps, first - self.lags)
        return slice(begin, max(begin, bisect_left(self.steps, stop - 1)))

    def lag(self, first: int, stop: int, some: slice) -> Tensor:
        """(m, n) the lag of each start after each step; of no product where it is below 1 or above `lags`."""
        return torch.arange(first, stop)[:, None] - self.tensor[some]

    def there(self, lag: Tensor) -> Tensor:
        """(m, n) True where the step continues the product."""
        return (lag > 0) & (lag <= self.lags)


class Carried(Starts):
    """The products of some starts.

    Attributes:
        basis: (s, p) the directions; all s of them, the identity, where the products are exact.
        rows: (n, p, s) M of each direction, of Frobenius norm `unit`; the size that was divided out is in `logs`.
        logs: (n, ℓ) ln of ‖M‖_F over unit / √p, NaN where the sequence ends before the lag.
    """

    def __init__(self, steps: Sequence[int], lags: int, basis: Tensor, unit: float) -> None:
        super().__init__(steps, lags)
        self.basis, self.unit, self.spread = basis, unit, SeenSpread()
        count = len(self.steps)
        self.rows = basis.T.repeat(count, 1, 1)
        self.logs = torch.full((count, lags + 1), math.nan, dtype=torch.float64)
        self.logs[:, 0] = 0.0
        self._size = torch.zeros(count, dtype=torch.float64)
        self.norms, self._squares = torch.ones(0, count, dtype=torch.float64), basis.new_zeros(0)

    @property
    def exact(self) -> bool:
        """Whether every direction is carried."""
        return self.basis.shape[0] == self.basis.shape[1]

    def begin(self, first: int, stop: int) -> None:
        """A piece of steps begins: `norms` (m, n) is by how much each of them changes the size, 1 until known."""
        self.norms = torch.ones(stop - first, len(self.steps), dtype=torch.float64)
        if not self.exact:
            self._squares = self.norms.new_full((*self.norms.shape, self.basis.shape[1]), math.nan)

    def take(self, moved: Tensor, some: slice, at: int) -> None:
        """The products of some starts after step `at` of the piece: moved (n, p, s) is J of their rows."""
        if self.exact or moved.dtype != torch.float32:
            norms = frobenius_norms(moved, (1, 2))
        if not self.exact:
            squares = torch.linalg.vector_norm(moved.double(), dim=2).square_()
            self._squares[at, some] = squares
            if moved.dtype == torch.float32:
                norms = squares.sum(1).sqrt_()
        norms = norms / self.unit
        self.norms[at, some] = norms
        scale = torch.where((norms > 0) & torch.isfinite(norms), norms, 1.0)
        torch.div(moved, scale.to(moved.dtype)[:, None, None], out=self.rows[some])

    def book(self, first: int, stop: int) -> None:
        """The steps of the piece are done: note the logarithms of the sizes."""
        some = self.active(first, stop)
        lag = self.lag(first, stop, some)
        there = self.there(lag)
        sizes = torch.cat((self._size[None, some], self.norms[:, some].log())).cumsum(0)[1:]
        self._size[some] = sizes[-1]
        numbers = torch.arange(some.start, some.stop).expand_as(lag)
        self.logs[numbers[there], lag[there]] = sizes[there]
        if not self.exact:
            self.spread.add(self._squares[:, some][there])


class Watch:
    """What looks at the rows of one set of starts after each piece of steps; it may also have none of its own."""

    starts: Starts
    size: int
    carried: Carried | None

    def look(self, block: StepBlock, begin: int, steps: slice, rows: Tensor | None) -> None:
        """Steps of a block that begins at processing step `begin`; rows (m, n, p, s) of the starts that are active."""
        raise NotImplementedError


def walk(recurrence: Recurrence, sample: int, emit: Emitter, sets: Sequence[Carried], watch: Watch | None) -> None:
    """Carry all sets through the steps of one sample. `watch.carried` is one of them or None."""
    for begin, block in recurrence.blocks(sample, BLOCK_STEPS):
        emit.check()
        emit.tell(begin, recurrence.length(sample))
        stop = begin + block.shape[0]
        moving = [one for one in sets if _many(one.active(begin, stop))]
        watched = watch if watch is not None and _many(watch.starts.active(begin, stop)) else None
        if not moving and watched is None:
            continue
        most = max(_rows_at(moving, t) for t in range(begin, stop))
        push = forward(block, most) if most else None
        for first in range(begin, stop, size := _piece(watched, begin, stop)):
            last = min(first + size, stop)
            rows = _steps(push, moving, begin, first, last, watched)
            for one in moving:
                one.book(first, last)
            if watched is not None:
                watched.look(block, begin, slice(first - begin, last - begin), rows)


def _steps(
    push: Push | None, sets: Sequence[Carried], begin: int, first: int, last: int, watched: Watch | None
) -> Tensor | None:
    """Steps first … last-1 of a block; the rows that are watched, after each of them."""
    for one in sets:
        one.begin(first, last)
    carried = None if watched is None else watched.carried
    kept, some = None, slice(0, 0)
    if carried is not None and carried in sets:
        some = carried.active(first, last)
        kept = carried.rows.new_empty(last - first, _many(some), *carried.rows.shape[1:])
    for t in range(first, last):
        if push is not None:
            _one_step(push, sets, t - begin, t, t - first)
        if kept is not None and carried is not None:
            kept[t - first] = carried.rows[some]
    return kept


def _one_step(push: Push, sets: Sequence[Carried], offset: int, t: int, at: int) -> None:
    moving = [(one, some) for one in sets if _many(some := one.active(t, t + 1))]
    if not moving:
        return
    given = [one.rows[some].flatten(0, 1) for one, some in moving]
    moved = push(given[0] if len(given) == 1 else torch.cat(given), offset)
    for (one, some), part in zip(moving, moved.split([len(rows) for rows in given]), strict=True):
        one.take(part.view(_many(some), *one.rows.shape[1:]), some, at)


def _piece(watched: Watch | None, begin: int, stop: int) -> int:
    """Steps of a piece: as many as may be kept, or the whole block where no rows are."""
    if watched is None:
        return stop - begin
    many, rows = max(1, _many(watched.starts.active(begin, stop))), watched.carried
    one = 8 * many * watched.size if rows is None else rows.rows[0].nbytes * many
    return max(1, PIECE_BYTES // max(1, one))


def _rows_at(sets: Sequence[Carried], t: int) -> int:
    return sum(_many(one.active(t, t + 1)) * one.basis.shape[1] for one in sets)


def _many(some: slice) -> int:
    return int(some.stop - some.start)
