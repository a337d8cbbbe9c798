"""A spike of the loss: in one batch a window is in other units, and nothing clips the gradient.

All numbers are in hundreds of sunspots, but in one batch a window is in single ones: a hundred times too large. The
loss and the gradient jump at that iteration, and the net needs about ten updates to come back. What the ring kept of
the iteration is in the capture's folder `spikes`.
"""

from __future__ import annotations

import torch
from torch import nn

from sample_models import sunspots_gru as sunspots
from sample_models.base import Plain, seeded
from sample_models.readers import Transducer
from sample_models.trainings.plan import Draw, Plan, one

TRAINING = {
    "name": "training-spike",
    "title": "A spike of the loss",
    "task": "next year's sunspot number, in hundreds",
    "shows": "one iteration whose gradient is far above all others, kept with its batch, and what it takes to recover",
}
SPOILED, ROW, FACTOR = 241, 5, 100.0
"""The iteration, the window of its batch, and how many times too large that is."""


def spoiled() -> Draw:
    """Batches as usual, but one."""
    count = 0

    def draw(generator: torch.Generator) -> Plain:
        nonlocal count
        count += 1
        batch = sunspots.draw(generator)
        if count == SPOILED:
            batch.inputs[ROW] *= FACTOR
        return batch

    return draw


def build() -> Plan:
    """16 units, plain SGD."""
    with seeded():
        model = Transducer(nn.GRU(1, 16, batch_first=True), 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Plan(model, optimizer, spoiled(), sunspots.next_value_loss, one(sunspots.draw), steps=400, probe_every=100,
                notes={SPOILED: f"window {ROW} of the next batch is {FACTOR:.0f} times too large"})  # fmt: skip
