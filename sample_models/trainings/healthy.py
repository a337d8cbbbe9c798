"""The same task as in `vanishing`, learned: an LSTM whose forget gates start open.

A bias of 4 makes them 0.98, so that the gradient at the first of forty steps is a sixth of that at the last one before
any training, and larger than it while the task is learned.
References: Hochreiter & Schmidhuber (1997); Gers, Schmidhuber & Cummins (2000) for the bias.
"""

from __future__ import annotations

import torch
from torch import nn

from sample_models.base import seeded
from sample_models.trainings import recall
from sample_models.trainings.plan import Plan, one

TRAINING = {
    "name": "training-healthy",
    "title": "The same, learned by an LSTM",
    "task": "which of eight symbols came first, asked after forty",
    "shows": "a loss that falls from 2.08 to 0.01, and gradients that reach the first step from the beginning",
}
UNITS, OPEN = 32, 4.0


def build() -> Plan:
    """32 units, forget gates open, Adam."""
    with seeded():
        rnn = nn.LSTM(recall.EMBEDDED, UNITS, batch_first=True)
        with torch.no_grad():
            rnn.get_parameter("bias_ih_l0")[UNITS : 2 * UNITS] = OPEN
        model = recall.reader(rnn)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return Plan(model, optimizer, recall.draw, recall.first_symbol_loss, one(recall.draw), clip=1.0, steps=600,
                every=5, probe_every=150)  # fmt: skip
