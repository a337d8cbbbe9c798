"""How well recomputed steps reproduce what a module returned, and the error that rounding alone may cause in them."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.check import Check

NO_GRADIENT = (
    "Some states of {} need no gradient (no parameter made them, or autograd was off) and may be read by more than the "
    "next step, so autograd has not followed them; the gradient at those steps is not known and left out."
)


def allowed_error(resolution: float, size: float) -> float:
    """The allowed error of one recomputed step, for states of a size: some units of rounding."""
    return (64 if resolution < 1e-5 else 8) * resolution * max(1.0, size)


def distance(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference; entries that are not finite in both (an exploding run) count as equal."""
    if not a.numel():
        return 0.0
    b = b.to(a.dtype)
    found = float((a - b).abs_().max())
    if found == found and found != torch.inf:
        return found
    same = ~torch.isfinite(a) & ~torch.isfinite(b)
    return float(torch.where(same, torch.zeros_like(a), (a - b).abs()).max())


def largest(values: Tensor) -> float:
    """Largest absolute value that is finite."""
    if not values.numel():
        return 0.0
    low, high = (float(v) for v in torch.aminmax(values))
    if low == low and abs(low) != torch.inf and abs(high) != torch.inf:
        return max(-low, high)
    return float(values.abs().nan_to_num(0.0, 0.0, 0.0).max())


def judge(pairs: list[tuple[float, float]]) -> Check:
    """The Check of the worst of several (error, allowed)."""
    error, allowed = max(pairs, key=lambda pair: pair[0] / pair[1] if pair[0] == pair[0] else torch.inf)
    return Check(error, allowed)


def against_bound(made: Tensor, given: Tensor, bound: Tensor, real: Tensor) -> tuple[float, float]:
    """(error, bound) of the entry that is nearest to its bound or exceeds it; made, given (t, b, h), real (t, b)."""
    error = (made - given).abs()[real]
    limit = bound[real]
    error = torch.where(~torch.isfinite(made[real]) & ~torch.isfinite(given[real]), torch.zeros_like(error), error)
    ratio = (error / limit).nan_to_num(torch.inf, torch.inf, -torch.inf)
    ratio = torch.where(error == 0, torch.zeros_like(ratio), ratio)
    worst = int(ratio.argmax())
    return float(error.flatten()[worst]), float(limit.flatten()[worst])
