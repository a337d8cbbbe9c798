"""Columns of a list in a terminal."""

from __future__ import annotations

WIDEST_COLUMN = 60


def width_of(names: list[str]) -> int:
    """The width of a column; a longer name shifts its own row only."""
    return min(max(map(len, names), default=0), WIDEST_COLUMN)
