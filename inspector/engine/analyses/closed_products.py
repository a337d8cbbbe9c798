"""Products of step Jacobians by lag where every Jacobian is normal and they commute: of decays of single entries.

‖J_{k+ℓ} … J_{k+1}‖²_F = Σ_s Π |a_{k+i, s}|², so only the logarithms of |a| are summed.
Letters: n start, ℓ lag, s entry.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.analyses.directions import SeenSpread
from inspector.engine.analyses.lag_budgets import FEWEST, LONGEST, LagBudget, spaced, which
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

BUDGET = 3e8
"""Starts × lags × state entries that are gone through for one layer, about a second; beyond, fewer starts."""


class ClosedBudget(LagBudget):
    """Starts and lags of products in closed form, for t steps and s state entries of any number."""

    def __init__(self, t: int, s: int) -> None:
        if t < 2:
            raise Unsupported("Products of Jacobians need at least two steps.")
        self.lags = min(t - 1, LONGEST)
        count = max(1, min(t - 1, max(FEWEST, int(BUDGET / (s * self.lags)))))
        self.directions, self.size, self.spread, self.steps = s, s, SeenSpread(), t
        self.starts = spaced(count, t)

    @property
    def method(self) -> str:
        """Exact; which starts and lags."""
        return f"exact: products of decays, in closed form; {which(len(self.starts), self.steps, self.lags)}"


def plan_of(recurrence: Recurrence, sample: int) -> LagBudget:
    """The starts, lags and directions for one sample. Raises Unsupported where products cost too much."""
    length, s = recurrence.length(sample), recurrence.cell.state_size
    return ClosedBudget(length, s) if is_diagonal(recurrence) else LagBudget(length, s)


def is_diagonal(recurrence: Recurrence) -> bool:
    """Whether the Jacobians have eigenvalues in closed form and commute."""
    return recurrence.cell.diagonal


def closed_products(recurrence: Recurrence, sample: int, emit: Emitter) -> tuple[LagBudget, Tensor]:
    """(plan, ln of the norms over √S (n, ℓ) in float64, NaN where the sequence ends before the lag)."""
    plan = ClosedBudget(recurrence.length(sample), recurrence.cell.state_size)
    sizes = torch.cat([_sizes(block.eigenvalues()) for _, block in recurrence.blocks(sample, 64)])
    starts = torch.tensor(plan.starts)
    total = torch.zeros(len(starts), sizes.shape[1], dtype=torch.float64)
    logs = torch.full((len(starts), plan.lags + 1), math.nan, dtype=torch.float64)
    logs[:, 0] = 0.0
    for lag in range(1, plan.lags + 1):
        if lag % 64 == 1:
            emit.check()
        there = int((starts + lag < len(sizes)).sum())
        total[:there] += sizes[starts[:there] + lag]
        logs[:there, lag] = 0.5 * (torch.logsumexp(2 * total[:there], 1) - math.log(sizes.shape[1]))
    return plan, logs


def _sizes(values: Tensor | None) -> Tensor:
    """ln |a|, (t, s), of one sample."""
    assert values is not None
    return values[:, 0].abs().double().log()
