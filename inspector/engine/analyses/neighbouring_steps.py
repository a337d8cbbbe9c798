"""How well one step follows another in data that is learned from the data itself, batch by batch.

Each batch is judged by what the batches before it have taught, so no pair is judged by itself: of ids
ln p(b | a) / p(b), their pointwise mutual information, from counts of neighbouring steps, with one imagined pair for
each a that is distributed as p(b); of vectors −‖a − b‖², in units of the summed variances of their components.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Scores = tuple[float, float, float]
LAGS = (1, 2, 3)
"""Steps from one to the other: texts are cut into pieces without a gap, and often with one step between two (inputs and
targets of pieces of t + 1 steps)."""
EXCHANGED = 8
"""Other beginnings with which each end is compared; where a batch has fewer rows, those of earlier ones are."""
MOST_WITHIN = 256
"""Neighbouring steps of a batch that are judged."""
MOST_PAIRS = 2_000_000
"""Different pairs of ids that are counted."""


class Neighbours:
    """Counts of steps that are `lag` apart, of all batches so far."""

    def __init__(self, lag: int = 1) -> None:
        self._lag = lag
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._before: Counter[int] = Counter()
        self._after: Counter[int] = Counter()
        self._firsts: deque[npt.NDArray[np.generic]] = deque(maxlen=EXCHANGED)
        self._seen: set[bytes] = set()

    def add(self, source: npt.NDArray[np.int64], here: Array, first: Array) -> Scores | None:
        """(follows, others, within) of a batch `here` (b, t) or (b, t, i) and what the next one begins with, `first`
        (b,) or (b, i): the mean score of what a row begins with, after what row `source` ended with (−1: none); after
        what the other sources ended with; and of steps inside `here`. Then the batch is counted.

        None where no row has a source, nothing can be exchanged, or there are too few steps.
        """
        rows = np.flatnonzero(source >= 0)
        lasts, firsts = here[source[rows], -1], first[rows]
        score = self._of_ids if here.ndim == 2 else _Distance(here)
        found: Scores | None = None
        exchanged, steps = list(self._exchanged(lasts, firsts)), here.shape[1] - self._lag
        here = self._new(here)
        if exchanged and steps > 0 and len(here):
            follows = [score(a, b) for a, b in zip(lasts, firsts, strict=True)]
            others = [score(a, b) for a, b in exchanged]
            within = [score(here[row, at], here[row, at + self._lag]) for row, at in _some(len(here), steps)]
            found = _mean(follows), _mean(others), _mean(within)
        self._count(here, first)
        return found

    def _new(self, here: Array) -> Array:
        """The rows that were not seen before; vectors are not counted, so all of them."""
        if here.ndim > 2:
            return here
        known = [row.tobytes() for row in here]
        new = [n for n, row in enumerate(known) if row not in self._seen]
        self._seen.update(known)
        return here[new]

    def _exchanged(self, lasts: Array, firsts: Array) -> Iterator[tuple[Array, Array]]:
        """Ends, each with beginnings of other rows."""
        rows = len(lasts)
        for n, last in enumerate(lasts):
            others = [firsts[(n + shift) % rows] for shift in range(1, min(rows, EXCHANGED + 1))]
            for first in [*others, *self._firsts][:EXCHANGED]:
                yield last, first

    def _of_ids(self, a: Array, b: Array) -> float:
        total = self._after.total()
        if not total or not self._before[int(a)]:
            return 0.0
        share = (self._after[int(b)] + 1) / (total + len(self._after) + 1)
        seen = self._before[int(a)]
        return math.log((self._pairs[int(a), int(b)] + share) / ((seen + 1) * share))

    def _count(self, here: Array, first: Array) -> None:
        self._firsts.extend(first)
        if here.ndim == 2 and len(self._pairs) < MOST_PAIRS:
            before, after = here[:, : -self._lag].ravel().tolist(), here[:, self._lag :].ravel().tolist()
            self._pairs.update(zip(before, after, strict=True))
            self._before.update(before)
            self._after.update(after)


class _Distance:
    """−‖a − b‖² in units of the summed variances of a batch (b, t, i)."""

    def __init__(self, here: Array) -> None:
        spread = float(here.reshape(-1, here.shape[-1]).astype(np.float64).var(axis=0).sum())
        self._spread = spread if spread > 0 else 1.0

    def __call__(self, a: Array, b: Array) -> float:
        return -float(np.square(a.astype(np.float64) - b.astype(np.float64)).sum()) / self._spread


def _some(rows: int, steps: int) -> Iterator[tuple[int, int]]:
    """Places (row, step), evenly apart."""
    for place in np.linspace(0, rows * steps - 1, min(rows * steps, MOST_WITHIN)).astype(int).tolist():
        yield divmod(place, steps)


def _mean(scores: Iterable[float]) -> float:
    return float(np.mean(list(scores)))
