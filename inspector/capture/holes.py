"""Which cells of an array are not known: those that no page brought, and those whose page is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Box
from inspector.capture.parsing import PageRow

Marks = npt.NDArray[Any]
MISSING, KNOWN, DAMAGED = 0, 1, 2
MOST_GAPS = 64
MOST_CELLS = 16 << 20
"""Parts into which pages may divide an array; only a malicious index has more, see `holes_of`."""


@dataclass(frozen=True, slots=True)
class Holes:
    """Boxes of cells, (first, stop) along each axis: `missing` came with no page, `damaged` with a damaged one."""

    missing: tuple[Box, ...] = ()
    damaged: tuple[Box, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.damaged)

    def __or__(self, other: Holes) -> Holes:
        """The cells that are not known in one or the other."""
        return Holes((*self.missing, *other.missing), (*self.damaged, *other.damaged))


WHOLE = Holes()


def holes_of(bounds: Box, pages: Sequence[PageRow], is_bad: Callable[[PageRow], bool], *, filled: bool) -> Holes:
    """The holes within some bounds of an array, as its own indices. Later pages override earlier ones, as in reading.

    With `filled` a cell that no page brought is known, as its channel declares. The pages' edges divide the bounds
    into parts, and every page is painted into the parts that it covers, so that the cost is that of the pages and
    not that of the cells. Where the parts are too many, damaged pages are given as they are and nothing is missing.
    """
    if any(stop <= first for first, stop in bounds):
        return WHOLE
    corners, seen = _clipped(pages, bounds)
    marks = [DAMAGED if is_bad(pages[n]) else KNOWN for n in seen]
    edges = [np.unique([*bounds[axis], *corners[:, axis].reshape(-1)]) for axis in range(len(bounds))]
    if np.prod([len(own) - 1 for own in edges], dtype=object) > MOST_CELLS:
        bad = [box for box, mark in zip(corners.tolist(), marks, strict=True) if mark == DAMAGED]
        return Holes((), tuple(tuple((first, stop) for first, stop in box) for box in bad))
    grid = np.full([len(own) - 1 for own in edges], KNOWN if filled else MISSING, np.uint8)
    cells = (
        np.stack([np.searchsorted(own, corners[:, axis]) for axis, own in enumerate(edges)], 1) if edges else corners
    )
    for sides, mark in zip(cells.tolist(), marks, strict=True):
        grid[tuple(slice(first, stop) for first, stop in sides)] = mark
    return Holes(tuple(_boxes(grid == MISSING, edges)), tuple(_boxes(grid == DAMAGED, edges)))


def _clipped(pages: Sequence[PageRow], bounds: Box) -> tuple[Marks, list[int]]:
    """((page, axis, 2): the first cell and the stop within the bounds, the numbers of these pages); pages that lie
    beyond are left out."""
    sides = (len(pages), len(bounds))
    start = np.array([page.start for page in pages], np.int64).reshape(sides)
    length = np.array([page.shape for page in pages], np.int64).reshape(sides)
    low, high = np.array(bounds, np.int64).reshape(len(bounds), 2).T
    corners = np.stack((np.maximum(start, low), np.minimum(start + length, high)), axis=2)
    seen = np.flatnonzero((corners[:, :, 0] < corners[:, :, 1]).all(axis=1))
    return corners[seen], seen.tolist()


def _boxes(marked: npt.NDArray[np.bool_], edges: Sequence[npt.NDArray[Any]]) -> list[Box]:
    """The marked parts as few boxes: equal neighbours along the first axis are joined, each looked into."""
    if not marked.any():
        return []
    if not marked.ndim:
        return [()]
    rows = marked.reshape(len(marked), -1)
    if rows.shape[1] == 1:  # as of pages that span every axis but the first
        return _runs(rows[:, 0], edges)
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    found: list[Box] = []
    for first, stop in pairwise((0, *changes.tolist(), len(rows))):
        side = (int(edges[0][first]), int(edges[0][stop]))
        found += [(side, *rest) for rest in _boxes(marked[first], edges[1:])]
    return found


def _runs(marked: npt.NDArray[np.bool_], edges: Sequence[npt.NDArray[Any]]) -> list[Box]:
    """The marked parts where only the first axis is divided."""
    rest = tuple((int(own[0]), int(own[-1])) for own in edges[1:])
    turns = np.flatnonzero(np.diff(marked, prepend=False, append=False))
    sides = edges[0][turns].tolist()
    return [((first, stop), *rest) for first, stop in zip(sides[::2], sides[1::2], strict=True)]


def inside(box: Box, bounds: Box) -> tuple[slice, ...] | None:
    """Where a box lies within some bounds, counted from their beginning; None where it does not."""
    cuts = [
        (max(first, low) - low, min(stop, high) - low)
        for (first, stop), (low, high) in zip(box, bounds, strict=True)
    ]  # fmt: skip
    return tuple(slice(*cut) for cut in cuts) if all(first < stop for first, stop in cuts) else None


class Coverage:
    """Whether pages that came one by one leave no gap, without examining all of them again.

    Only pages that span every axis but the first, and few gaps at a time, are followed; for others `is_whole` returns
    False and `holes_of` decides.
    """

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._followed = True
        self._any = False

    def add(self, page: PageRow, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """One more page; the array's extent `before` and `after` it."""
        widened = self._any and before[1:] != after[1:]
        self._any = True
        if not page.shape or not self._followed:
            return
        if widened or page.shape[1:] != after[1:] or any(page.start[1:]) or len(self._spans) > MOST_GAPS:
            self._followed = False
            return
        first, spans = page.start[0], self._spans
        if spans and spans[-1][1] == first:  # as nearly all do
            spans[-1] = (spans[-1][0], first + page.shape[0])
        else:
            self._spans = joined([*spans, (first, first + page.shape[0])])

    def is_whole(self, extent: Sequence[int]) -> bool:
        """True when the pages so far surely cover the extent."""
        if not extent:
            return self._any
        return self._followed and self._spans == [(0, extent[0])]


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return found
