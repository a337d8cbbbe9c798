"""How the rows of a table end: a last one without an end may be cut in the middle of a number, as a killed program
leaves it, and then it is another number."""

from __future__ import annotations

import math
from collections.abc import Sequence

MANY = 3
"""Rows after which it is known how many decimals the last column has."""


class RowEnds:
    """What the whole rows of a table have in common. `step`: the column of the steps, -1 for none."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._count = self._rows = 0
        self._decimals = -1
        """Of the last cell of each row so far; -1 where they differ."""
        self._last = -math.inf

    def note(self, cells: Sequence[str]) -> None:
        """One row that is whole."""
        found = _decimals(cells[-1])
        same = self._rows == 0 or (self._decimals == found and self._count == len(cells))
        self._decimals = found if same else -1
        self._count = len(cells)
        self._rows += 1
        self._last = _number(cells[self._step]) if -1 < self._step < len(cells) else self._last

    def why_cut(self, cells: Sequence[str]) -> str:
        """Why a row without an end is not whole, in words; "" where nothing says so. Counter-example: numbers of any
        length, of which a part is a number too."""
        if len(cells) < self._count:
            return f"{len(cells):,} cells where the one before has {self._count:,}"
        if len(cells) - 1 == self._step and _number(cells[-1]) <= self._last:
            return "its step is not above the one before"
        if self._rows >= MANY and 0 < self._decimals != _decimals(cells[-1]):
            return "fewer decimals than all before"
        return ""


def _decimals(cell: str) -> int:
    whole, point, rest = cell.strip().partition(".")
    return len(rest) if point and (whole.lstrip("+-") + rest).isdigit() else -1


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return -math.inf
