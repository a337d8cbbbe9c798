"""How well recomputed steps reproduce what a module returned, and how far off rounding alone may put them."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell, Check
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep

ROUNDINGS = 8
"""Roundings of a long sum, in units of the sum of the absolute values of its terms, that two kernels may differ by."""


def allowed_error(resolution: float, size: float) -> float:
    """How far one recomputed step may be off, for states of a size: some units of rounding."""
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
    """(error, bound) of the entry that comes nearest to its bound or passes it; made, given (t, b, h), real (t, b)."""
    error = (made - given).abs()[real]
    limit = bound[real]
    error = torch.where(~torch.isfinite(made[real]) & ~torch.isfinite(given[real]), torch.zeros_like(error), error)
    ratio = (error / limit).nan_to_num(torch.inf, torch.inf, -torch.inf)
    ratio = torch.where(error == 0, torch.zeros_like(ratio), ratio)
    worst = int(ratio.argmax())
    return float(error.flatten()[worst]), float(limit.flatten()[worst])


def rounding_bound(
    cell: Cell, x: Tensor, states: Tensor, inside: tuple[Tensor, ...], resolution: float
) -> tuple[Tensor, Tensor | None]:
    """How far rounding may put h, and c of an LSTM, off at each step: (t, b, h) and (t, b, h) or None.

    Running error analysis: every gate is off by its slope times that of its pre-activation, which is off by some
    roundings of the terms that it sums; an LSTM's c carries f times the error of the step before. The h before each
    step is the module's own and thus exact. (Higham 2002, Accuracy and Stability of Numerical Algorithms, ch. 3.)
    Shapes: x (t, b, i), states (t + 1, b, s), inside as `products.inside` gives it.
    """
    h, before = states[1:, :, cell.parts["h"]], states[:-1, :, cell.parts["h"]]
    unit = ROUNDINGS * resolution
    sums = x.abs() @ _rows(cell, "w_ih").abs().T + before.abs() @ _rows(cell, "w_hh").abs().T
    sums = sums + sum(b.abs() for b in (getattr(cell, n, None) for n in ("bias", "b_ih", "b_hh")) if b is not None)
    if isinstance(cell, LstmStep):
        return _lstm_bound(cell, states, inside, unit * sums, unit)
    if isinstance(cell, GruStep):
        _, z, n, q = inside
        e_r, e_z, e_n = (unit * sums).chunk(3, -1)
        e_n = e_n + q.abs() * e_r / 4 + unit * n.abs()
        return (n - before).abs() * e_z / 4 + (1 - z) * e_n + unit * (h.abs() + n.abs()), None
    return unit * (sums + h.abs()), None


def _lstm_bound(
    cell: LstmStep, states: Tensor, inside: tuple[Tensor, ...], off: Tensor, unit: float
) -> tuple[Tensor, Tensor]:
    i, f, g, o = inside
    e_i, e_f, e_g, e_o = off.chunk(4, -1)
    c = states[:, :, cell.parts["c"]]
    e_c = e_i / 4 * g.abs() + i * e_g + c[:-1].abs() * e_f / 4 + unit * (c[1:].abs() + 1e-3)
    for t in range(1, e_c.shape[0]):
        e_c[t].addcmul_(f[t], e_c[t - 1])
    squashed = torch.tanh(c[1:]).abs()
    e_h = squashed * e_o / 4 + o * e_c + unit * squashed
    if cell.w_hr is not None:
        e_h = (e_h + unit * o * squashed) @ cell.w_hr.abs().T
    return e_h, e_c


def _rows(cell: Cell, name: str) -> Tensor:
    found: Tensor = getattr(cell, name)
    return found
