"""Gradients that vanish: a plain recurrent net is to remember a symbol for forty steps, and learns nothing.

The norm of the whole gradient looks as usual, since the last steps have theirs. What the loss at the end says about the
first symbol is smaller by ten orders of magnitude: see the gradients by step, and the products of Jacobians by lag.
References: Hochreiter (1991); Bengio, Simard & Frasconi (1994).
"""

from __future__ import annotations

import torch
from torch import nn

from sample_models.base import seeded
from sample_models.trainings import recall
from sample_models.trainings.plan import Plan, one

TRAINING = {
    "name": "training-vanishing",
    "title": "Gradients that vanish",
    "task": "which of eight symbols came first, asked after forty",
    "shows": "a loss that stays at guessing (2.08), and gradients that end long before the first step",
}


def build() -> Plan:
    """32 tanh units as PyTorch starts them, Adam."""
    with seeded():
        model = recall.reader(nn.RNN(recall.EMBEDDED, 32, batch_first=True))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return Plan(model, optimizer, recall.draw, recall.first_symbol_loss, one(recall.draw), clip=1.0, steps=600,
                every=5, probe_every=150)  # fmt: skip
