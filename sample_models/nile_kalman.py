"""Kalman filter on a real time series, S22: the flow of the Nile at Aswan, 1871 to 1970, a level that walks at random.

The level is what is hidden: z_t = z_{t−1} + B ε, x_t = z_t + D ψ. Trained by the gradient of the exact log-likelihood,
B and D end where Durbin & Koopman (2012, section 2.2) have them, at variances of 1,469 and 15,099. Look at the filtered
level beside the smoothed one, at the gain that settles, and at the innovations: the flow fell in 1899 and the model
does not know of it. Source of the numbers: data/SOURCES.md.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from sample_models.base import FOLDER, Plain, Sample, Training
from sample_models.state_space import LinearGaussian, filter_loss

SAMPLE = {
    "name": "nile-kalman",
    "row": "S22",
    "title": "Kalman filter, flow of the Nile",
    "task": "the flow of each year from those before, in 10¹⁰ m³",
    "shows": "filtered against smoothed level with bands, gain over time, innovations with their χ² band",
}


@cache
def flow() -> Tensor:
    """(100, 1): the flow of the years 1871 to 1970, in 10¹⁰ m³."""
    table = np.loadtxt(FOLDER / "data" / "nile.csv", delimiter=",", skiprows=1, dtype=np.float32)
    return torch.from_numpy(table[:, 1:] / 100)


def draw(_generator: torch.Generator) -> Plain:
    """All there is: one series."""
    return Plain(flow()[None], torch.tensor([len(flow())]))


def start() -> dict[str, Tensor]:
    """A level of unknown height that walks as much as is measured wrongly, and both far too much."""
    one = torch.ones(1, 1)
    return {"A": one, "B": 5 * one, "C": one, "d": torch.zeros(1), "D": 5 * one, "m": torch.zeros(1), "P": 1000 * one}


def build() -> Sample:
    """One hidden number; B and D are learned."""
    years = flow().numpy()
    return Sample(
        model=LinearGaussian(start(), "BD"), name="nile-kalman", kind="vectors", width=1, loss=filter_loss,
        training=Training(draw, rate=1e-2, steps=1600),
        examples={"1871 to 1970": years, "1871 to 1920": years[:50], "1921 to 1970": years[50:]},
    )  # fmt: skip
