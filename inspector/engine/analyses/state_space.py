"""The state space of one run: principal components of the states that a layer went through, and their speed.

Shared by the quantities that are plotted in it, so that trajectories and fixed points lie in the same plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Recurrence

MOST_STATES, WIDE, MOST_WIDE = 2000, 512, 500
"""The most states from which the components are computed, evenly spaced; fewer where a state is wide."""
COMPONENTS = 6


@dataclass(frozen=True, slots=True)
class StateSpace:
    """Mean (s,) and principal directions (s, k) of the states of one sample, float64; `note` says from which states.

    The largest entry of each direction is positive, so that the same states give the same picture.
    """

    mean: Tensor
    directions: Tensor
    note: str

    def project(self, states: Tensor) -> Tensor:
        """Coordinates (n, k) of states (n, s)."""
        return (states.double() - self.mean) @ self.directions


def visited(recurrence: Recurrence, sample: int) -> Tensor:
    """The states after every real step of a sample, (t, s), in processing order."""
    return recurrence.states[1 : recurrence.length(sample) + 1, sample - recurrence.base]


def state_space(recurrence: Recurrence, sample: int) -> StateSpace:
    """Principal components of the states of a sample (Pearson 1901), by SVD of the centred states."""
    states = visited(recurrence, sample)
    most = MOST_STATES if states.shape[1] <= WIDE else MOST_WIDE
    stride = max(1, -(-len(states) // most))
    some = states[::stride].double()
    some = some[torch.isfinite(some).all(1)]
    if len(some) < 2:
        raise Unsupported("Principal components need at least two finite states.")
    mean = some.mean(0)
    rows = torch.linalg.svd(some - mean, full_matrices=False).Vh[:COMPONENTS]
    largest = rows.gather(1, rows.abs().argmax(1, keepdim=True))
    directions = (rows * torch.where(largest < 0, -1.0, 1.0)).T
    return StateSpace(mean, directions, "exact" if stride == 1 else f"components of every {stride}th state")


def speeds(recurrence: Recurrence, sample: int) -> Tensor:
    """‖s_t − s_{t−1}‖₂ of every real step, (t,), in processing order."""
    before = recurrence.states[: recurrence.length(sample), sample - recurrence.base]
    found: Tensor = (visited(recurrence, sample) - before).norm(dim=1)
    return found
