"""Functions of this package that count as a user's code when the operations of a run are recorded.

An edited run computes torch's own modules with the decorated steps. The recorder leaves out whatever this package
calls itself, but it must see these steps line by line: a gate is named by the variable that it is assigned to.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

AS_WRITTEN: set[CodeType] = set()
"""The code of these functions; the recorder compares frames with it."""


def as_written(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function's operations are recorded as if a user had written them, local names and all.

    Its first argument must be called `self`: the recorder finds the place of an operation by it.
    """
    AS_WRITTEN.add(function.__code__)
    return function
