"""Units that die: a recurrent net of rectified linear units, trained with thirty times the usual learning rate.

The first updates push most units below zero for every digit, where their gradient is zero too: they never come back.
The few that are left learn half of the task. Reference: Lu, Shin, Su & Karniadakis (2019), Dying ReLU and
initialization.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from sample_models import digits
from sample_models.base import Batch, seeded
from sample_models.readers import Transducer
from sample_models.trainings.plan import Plan, one

TRAINING = {
    "name": "training-dead-units",
    "title": "Units that die",
    "task": "which digit: an 8 × 8 image read row by row",
    "shows": "the share of zeros that jumps in the first ten updates and stays, and units that are zero at every step",
}


def loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): cross-entropy at the last row, NaN elsewhere."""
    return digits.last_step_loss(scores[:, -1:], batch)


def build() -> Plan:
    """48 rectified linear units, Adam at 0.1."""
    with seeded():
        model = Transducer(nn.RNN(8, 48, nonlinearity="relu", batch_first=True), len(digits.NAMES))
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    draw = partial(digits.draw, shape=(8, 8))
    return Plan(model, optimizer, draw, loss, one(draw), steps=300, every=3, probe_every=60)
