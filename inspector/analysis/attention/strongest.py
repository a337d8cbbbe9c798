"""The strongest weights of a map, to be drawn as lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Links:
    """Weights from queries to keys, the strongest last; `share`: the part of the weight of the whole map, or of the one
    query or key, that they hold; `of`: from how many weights they were chosen."""

    queries: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    weights: Array
    share: float
    of: int

    def __len__(self) -> int:
        return len(self.weights)


def strongest(weights: Array, count: int, *, query: int | None = None, key: int | None = None) -> Links:
    """The `count` largest weights (query, key) that are neither masked (−∞) nor NaN nor 0; of one query or one key
    only, where one is given. For differences of two runs the ones farthest from 0."""
    size = np.abs(np.where(np.isfinite(weights), weights, 0.0))
    if query is not None or key is not None:
        only = np.zeros(size.shape, dtype=bool)
        if query is not None:
            only[query] = True
        if key is not None:
            only[:, key] = True
        size = np.where(only, size, 0.0)
    whole = float(size.sum())
    flat = size.ravel()
    there = int(np.count_nonzero(flat))
    count = min(count, there)
    chosen = np.argpartition(flat, len(flat) - count)[len(flat) - count :] if count else np.zeros(0, np.int64)
    chosen = chosen[np.argsort(flat[chosen], kind="stable")]
    queries, keys = np.divmod(chosen, max(1, weights.shape[1]))
    found = weights.ravel()[chosen].astype(np.float64)
    return Links(queries, keys, found, float(size.ravel()[chosen].sum()) / whole if whole else 0.0, there)


def strongest_of_each(weights: Array, count: int) -> Links:
    """The `count` largest weights of every query, chosen as above. In a map with a causal mask the largest of all are
    those of the first queries, which have few keys to share their weight among."""
    size = np.abs(np.where(np.isfinite(weights), weights, 0.0))
    there, whole = int(np.count_nonzero(size)), float(size.sum())
    count = min(count, weights.shape[1])
    keys = (
        np.argpartition(size, -count, axis=1)[:, -count:] if count and len(size) else np.zeros((len(size), 0), np.int64)
    )
    queries = np.repeat(np.arange(len(size)), keys.shape[1])
    flat = size[queries, keys.ravel()]
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] > 0]
    queries, chosen = queries[order], keys.ravel()[order]
    share = float(flat[order].sum()) / whole if whole else 0.0
    return Links(queries, chosen, weights[queries, chosen].astype(np.float64), share, there)


def apart(starts: Array, ends: Array, room: float, first: Array) -> npt.NDArray[np.bool_]:
    """Which of many lines, the strongest last, are drawn so that each of them can be seen: of those that begin and end
    less than `room` from each other one of `first` (bool), else the strongest.

    `starts` and `ends` are their places, in the unit of `room`.
    """
    drawn = np.zeros(len(starts), dtype=np.bool_)
    taken: dict[tuple[int, int], list[tuple[float, float]]] = {}
    order = [*np.flatnonzero(first)[::-1].tolist(), *np.flatnonzero(~first)[::-1].tolist()]
    for at in order:
        place = (float(starts[at]), float(ends[at]))
        cell = (math.floor(place[0] / room), math.floor(place[1] / room))
        if not _is_near(place, cell, taken, room):
            drawn[at] = True
            taken.setdefault(cell, []).append(place)
    return drawn


def _is_near(
    place: tuple[float, float], cell: tuple[int, int], taken: dict[tuple[int, int], list[tuple[float, float]]],
    room: float,
) -> bool:  # fmt: skip
    return any(
        abs(place[0] - start) < room and abs(place[1] - end) < room
        for down in (-1, 0, 1)
        for across in (-1, 0, 1)
        for start, end in taken.get((cell[0] + down, cell[1] + across), ())
    )


def rank_in_row(row: Array, key: int) -> tuple[int, int]:
    """(the rank of a key's weight among those of its row, 1 for the largest; how many keys may be attended to).

    Equal weights share the smallest rank; masked keys (−∞) have none.
    """
    allowed = row[~np.isneginf(row)]
    return 1 + int((allowed > row[key]).sum()), len(allowed)
