"""The tensors in what a function of the user's was given or returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

DEPTH = 4
"""Lists within lists that are looked into in a call of the user's code: what is nested deeper may hold itself."""


def tensors_within(value: Any, depth: int = DEPTH) -> Iterator[Tensor]:
    """All tensors in tuples, lists and mappings, in order, in at most so many of them within each other."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple, Mapping)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_within(one, depth - 1)
