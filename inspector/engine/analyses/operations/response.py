"""How much the outputs of one operation move when each entry of its inputs moves by one unit of rounding.

The operation is run a second time, on inputs that were moved by signs which are the same in every run. That is what
rounding of the inputs does, and, since the entries round anew, about what the rounding inside of it does too: measured
for the numbers at hand, so that it needs no formula for each of torch's operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from inspector.engine.analyses.fingerprints import perturbed, real

NONE = math.nan


def again(func: Any, args: Any, kwargs: Any, *, random: bool) -> Any:
    """What it gives on moved copies of its inputs; None where it may not be run twice, or cannot.

    Only operations of torch's own, which do nothing but compute: not those that communicate, draw random numbers, or
    belong to somebody else.
    """
    if random or func.namespace != "aten":
        return None
    salt = 0

    def moved(value: Any) -> Any:
        nonlocal salt
        if not isinstance(value, Tensor):
            return value
        salt += 1
        return perturbed(value, salt)

    try:
        return func(*tree_map(moved, args), **tree_map(moved, kwargs))
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None


def distances(other: Sequence[Any], own: Sequence[Any]) -> list[float]:
    """‖other − own‖ of each pair of tensors; NaN where it is not known."""
    return [_distance(a, b) for a, b in zip(other, own, strict=True)] if len(other) == len(own) else [NONE] * len(own)


def _distance(one: Any, other: Any) -> float:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return NONE
    if not other.is_floating_point() and not other.is_complex():
        return 0.0
    change = real(one).cpu().double() - real(other).cpu().double()
    found = float(torch.linalg.vector_norm(change)) if change.numel() else 0.0
    return found if math.isfinite(found) else NONE
