"""Whether two programs compute the same numbers: outputs of one call each, compared within what rounding may cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from inspector.engine.model.tensors_within import tensors_within

ROUNDINGS = 1024
"""Units of rounding of the largest number of a result, by which two orders of the same sums may differ: a few hundred
operations one after the other, each of which adds a few. Counter-example: a program that amplifies rounding (a chaotic
recurrence of many steps) differs by more, and is then said not to agree."""


NESTED = 64
"""Lists within lists of a program's result: more than any program returns."""


def tensors_of(value: Any) -> Iterator[Tensor]:
    """All tensors of a result, in order: of tuples, lists and dictionaries."""
    return tensors_within(value, NESTED)


def difference(made: Any, given: Any) -> float:
    """The largest difference of two results, in units of what is allowed: up to 1 they agree; inf for other shapes.

    Entries that are not finite must be the same in both.
    """
    pairs = list(tensors_of(made)), list(tensors_of(given))
    if len(pairs[0]) != len(pairs[1]):
        return torch.inf
    return max((_difference(a.detach(), b.detach()) for a, b in zip(*pairs, strict=True)), default=0.0)


def _difference(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape:
        return torch.inf
    if not (a.is_floating_point() and b.is_floating_point()):
        return 0.0 if torch.equal(a.to(b.dtype), b) else torch.inf
    step = max(torch.finfo(a.dtype).eps, torch.finfo(b.dtype).eps)
    a, b = a.double(), b.double()
    odd = ~torch.isfinite(a) | ~torch.isfinite(b)
    if not torch.equal(a[odd].nan_to_num(0.5), b[odd].nan_to_num(0.5)):
        return torch.inf
    a, b = a[~odd], b[~odd]
    if not a.numel():
        return 0.0
    size = max(1.0, float(b.abs().max()))
    return float((a - b).abs().max()) / (ROUNDINGS * step * size)
