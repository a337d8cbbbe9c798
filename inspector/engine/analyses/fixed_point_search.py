"""Fixed and slow points of a recurrence under a constant input: minima of q(s) = ½‖s − F(s, x*)‖².

Reference: Sussillo & Barak (2013), Opening the black box; the tool FixedPointFinder (Golub & Sussillo 2018). Here by
Levenberg–Marquardt with the exact step Jacobian: (AᵀA + μI) δ = −Aᵀ r, r = F(s) − s, A = J − I, for all starts at once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell

ITERATIONS = 200
SMALL_STEP = 1e-12
"""A start has converged when its next step is shorter than this, relative to its length."""
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-14, 1e8


def step_and_jacobian(cell: Cell, x: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """F(s, x) (n, s) and ∂F/∂s (n, s, s) at states (n, s) under one input x (i,)."""
    inputs = x.expand(len(states), -1)
    after = cell.step(inputs, states)
    return after, cell.block(inputs[None], states[None], after[None]).jacobian()[0]


def minimise(
    step: Callable[[Tensor], tuple[Tensor, Tensor]], starts: Tensor, check: Callable[[], None]
) -> tuple[Tensor, Tensor]:
    """(states (n, s), whether each has converged (n,)) from starts (n, s); `check` may raise between iterations.

    `step` gives F (n, s) and ∂F/∂s (n, s, s) at states (n, s).
    """
    states = starts.clone()
    eye = torch.eye(states.shape[1], dtype=states.dtype)
    damping = torch.full((len(states),), FIRST_DAMPING, dtype=states.dtype)
    after, jacobian = step(states)
    still = torch.zeros(len(states), dtype=torch.bool)
    for _ in range(ITERATIONS):
        check()
        active = torch.nonzero(~still)[:, 0]
        if not len(active):
            break
        residual, slope = after[active] - states[active], jacobian[active] - eye
        gradient = (slope.mT @ residual[..., None])[..., 0]
        normal = slope.mT @ slope + damping[active, None, None] * eye
        move = torch.linalg.solve_ex(normal, -gradient).result
        trial = states[active] + move
        trial_after, trial_jacobian = step(trial)
        better = (trial_after - trial).norm(dim=1) < residual.norm(dim=1)
        accepted = active[better]
        states[accepted], after[accepted], jacobian[accepted] = (
            trial[better],
            trial_after[better],
            trial_jacobian[better],
        )
        factor = torch.where(better, 0.2, 4.0).to(damping)
        damping[active] = (damping[active] * factor).clamp(LEAST_DAMPING, MOST_DAMPING)
        short = move.norm(dim=1) <= SMALL_STEP * (1 + states[active].norm(dim=1))
        still[active] = short | (damping[active] >= MOST_DAMPING)
    return states, still


def distinct(states: Tensor, residuals: Tensor, apart: float) -> list[int]:
    """Indices of states (n, s) that are at least `apart` from each other; of near ones the least residual."""
    kept: list[int] = []
    for i in residuals.argsort().tolist():
        if not kept or float((states[kept] - states[i]).norm(dim=1).min()) >= apart:
            kept.append(i)
    return kept
