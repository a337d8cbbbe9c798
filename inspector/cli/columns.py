"""Columns of a list in a terminal."""

from __future__ import annotations

WIDEST_COLUMN = 60


def width_of(names: list[str]) -> int:
    """Of a column; a longer name pushes its own row aside, not all of them."""
    return min(max(map(len, names), default=0), WIDEST_COLUMN)
