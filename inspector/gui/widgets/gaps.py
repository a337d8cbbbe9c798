"""Where values are unknown: damaged (drawn hatched), or not written yet (drawn grey).

NaN is a number that a model made, and has its own colour (maps) or a gap in the line (curves); these two do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inspector.capture import Capture, Holes

Span = tuple[int, int]
Rect = tuple[Span, Span]
"""(first, stop) of columns, (first, stop) of rows."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Rectangles of cells of a map, or spans of steps (with rows that do not matter) of curves."""

    missing: tuple[Rect, ...] = ()
    damaged: tuple[Rect, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.damaged)

    def __or__(self, other: Gaps) -> Gaps:
        return Gaps((*self.missing, *other.missing), (*self.damaged, *other.damaged))

    def of_rows(self, order: Sequence[int]) -> Gaps:
        """The same where some of the rows are drawn, in an order: row i on screen is row order[i]."""
        return Gaps(tuple(in_order(self.missing, order)), tuple(in_order(self.damaged, order)))

    def reaching(self, before: int, after: int, columns: int) -> Gaps:
        """The same for values computed from `before` columns before to `after` columns after each of so many."""

        def wider(rects: tuple[Rect, ...]) -> tuple[Rect, ...]:
            return tuple(((max(0, a - after), min(columns, b + before)), rows) for (a, b), rows in rects)

        return Gaps(wider(self.missing), wider(self.damaged))


NONE = Gaps()


def gaps_of(
    capture: Capture, name: str, frame: int, *, x: int = 0, y: int | None = 1, at: dict[int, int] | None = None
) -> Gaps:
    """The gaps of a channel: columns along its axis `x`, rows along its axis `y` (None: all rows are one), where the
    other axes are cut at one position each by `at`."""
    holes: Holes = capture.holes(name, frame)
    if not holes:
        return NONE
    cuts = at or {}

    def flat(boxes: Sequence[Any]) -> tuple[Rect, ...]:
        seen = (box for box in boxes if all(box[axis][0] <= position < box[axis][1] for axis, position in cuts.items()))
        return tuple((box[x], (0, 1) if y is None else box[y]) for box in seen)

    return Gaps(flat(holes.missing), flat(holes.damaged))


def in_order(rects: Sequence[Rect], order: Sequence[int] | np.ndarray[Any, Any] | None) -> list[Rect]:
    """The rectangles where rows are drawn in another order: row i on screen is row order[i]."""
    if order is None:
        return list(rects)
    drawn = np.asarray(order)
    found: list[Rect] = []
    for columns, (first, stop) in rects:
        inside = np.concatenate(([0], ((drawn >= first) & (drawn < stop)).astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(inside))
        found += [(columns, (int(a), int(b))) for a, b in zip(edges[0::2], edges[1::2], strict=True)]
    return found
