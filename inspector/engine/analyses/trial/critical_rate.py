"""The largest step along a direction that does not raise the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.analyses.trial.trial_steps import Trial, norm, wide

LEAST_RATIO, MOST_RATIO = 1e-5, 1e2
"""‖η d‖ / ‖θ‖ at the first rate that is tried, and where the search ends."""
FACTOR, HALVINGS = 3.0, 5
EPSILON = 1e-8
"""Adam's, by which an entry without a gradient does not move."""


def sign(gradient: Tensor) -> Tensor:
    """Adam's first step: g / (|g| + ε), of complex numbers of each part."""
    whole = wide(gradient)
    parts = real_numbers(whole)
    found = parts / (parts.abs() + EPSILON)
    return torch.view_as_complex(found) if whole.is_complex() else found


def search(
    trial: Trial, first: float, direction: Sequence[Tensor], check: Callable[[], None]
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], float]:
    """((2, n) rates and losses, the rates rising; the critical rate).

    A loss that rises at the first rate by less than rounding is not taken to rise.
    """
    scale = norm(trial.parameters) / norm(direction) or 1.0
    slack = 8 * torch.finfo(trial.parameters[0].dtype).eps * abs(first)
    found: dict[float, float] = {}

    def rises(rate: float) -> bool:
        check()
        found[rate] = trial.loss_along(direction, rate)
        return not found[rate] <= first + slack

    rate, low = LEAST_RATIO * scale, math.nan
    while not rises(rate):
        low, rate = rate, rate * FACTOR
        if rate > MOST_RATIO * scale:
            break
    critical = math.inf if rate > MOST_RATIO * scale else low
    if math.isfinite(critical):
        high = rate
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if rises(middle) else (middle, high)
        critical = math.sqrt(low * high)
    rates = sorted(found)
    return np.array([rates, [found[one] for one in rates]]), critical
