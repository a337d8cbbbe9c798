"""Kalman filter of two hidden numbers on the sunspot numbers of 1700 to 2008, S22: an oscillation that is pushed.

z_t = A z_{t−1} + B ε, x_t = C z_t + d + D ψ, all trained by the gradient of the exact log-likelihood. The eigenvalues
of A end as a pair inside the unit circle whose angle is the cycle of about eleven years. Innovations are larger in the
years of large maxima than a linear Gaussian model allows for. Source of the numbers: data/SOURCES.md.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sample_models.base import Plain, Sample, Training
from sample_models.state_space import LinearGaussian, filter_loss
from sample_models.sunspots_gru import HELD_OUT, sunspots

SAMPLE = {
    "name": "sunspots-kalman",
    "row": "S22",
    "title": "Kalman filter, sunspots by year",
    "task": "the sunspot number of each year from those before, in tens",
    "shows": "a pair of eigenvalues that turns once in eleven years, filtered and smoothed states with bands",
}
WINDOW, ROWS = 80, 8


def tens() -> Tensor:
    """(309, 1): sunspot numbers in tens, 1700 to 2008."""
    return 10 * sunspots()


def draw(generator: torch.Generator) -> Plain:
    """A batch of random windows that end before the last fifty years."""
    starts = torch.randint(0, len(sunspots()) - HELD_OUT - WINDOW, (ROWS, 1), generator=generator)
    return Plain(tens()[starts + torch.arange(WINDOW)], torch.full((ROWS,), WINDOW))


def start() -> dict[str, Tensor]:
    """A slow, damped turn in a random direction."""
    turn = torch.tensor([[0.9, 0.2], [-0.2, 0.9]])
    return {
        "A": turn, "B": torch.eye(2), "C": torch.tensor([[1.0, 0.0]]), "d": torch.full((1,), 5.0),
        "D": torch.ones(1, 1), "m": torch.zeros(2), "P": 20 * torch.eye(2),
    }  # fmt: skip


def examples() -> dict[str, np.ndarray]:
    """The whole series, and parts of it."""
    years = tens().numpy()
    return {"1700 to 2008": years, "the last 100 years": years[-100:], "1750 to 1850": years[50:151]}


def build() -> Sample:
    """Two hidden numbers, untrained."""
    return Sample(
        model=LinearGaussian(start(), "ABdD"), name="sunspots-kalman", kind="vectors", width=1, loss=filter_loss,
        training=Training(draw, rate=1e-2, steps=1600),
        examples=examples(),
    )  # fmt: skip
