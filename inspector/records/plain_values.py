"""Values from outside as values that JSON can store, whatever their depth, their number, their size and their type.

What a user puts beside a run (`RunStart.meta`, `Frame.meta`) must never prevent the run's own numbers from being
written: where a value cannot be stored, a mark in its place describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

DEEPEST = 32
"""Levels of lists and mappings that are stored."""
MOST_VALUES = 50_000
"""Values that are stored in total: one that contains itself twice grows exponentially with the depth."""
MOST_DIGITS = 300
"""Digits of a whole number; Python itself refuses to write or read more than 4,300."""
_BITS = 1_000
"""A number of fewer bits has fewer digits than MOST_DIGITS + 2."""


def plain_value(value: Any) -> Any:
    """The value as None, bool, int, float, str, and lists and dicts of these, with marks for other values."""
    return _Walk().plain(value, 0)


class _Walk:
    def __init__(self) -> None:
        self.left = MOST_VALUES

    def plain(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value) if value.bit_length() < _BITS else f"… [a whole number of {value.bit_length():,} bits]"
        if isinstance(value, (Mapping, list, tuple)):
            return self._many(value, depth)
        return f"… [a value of type {type(value).__name__[:100]}]"

    def _many(self, value: Any, depth: int) -> Any:
        if depth >= DEEPEST:
            return f"… [nested deeper than {DEEPEST} levels]"
        named = isinstance(value, Mapping)
        kept: dict[str, Any] = {}
        for count, key in enumerate(value if named else range(len(value))):
            if self.left <= 0:
                kept["…"] = f"… [{len(value) - count:,} more values]"
                break
            item = value[key]
            kept[str(self.plain(key, DEEPEST))] = self.plain(item, depth + 1)
        return kept if named else list(kept.values())
