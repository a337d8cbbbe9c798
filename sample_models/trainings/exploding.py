"""Gradients that explode: an Elman network on text, its recurrent matrix three times an orthogonal one, not clipped.

Products of step Jacobians grow by thousands within thirty characters, so that each update is ruled by what lies
furthest back. The loss hardly gets better than counting characters.
Reference: Pascanu, Mikolov & Bengio (2013).
"""

from __future__ import annotations

import torch
from torch import nn

from sample_models import text
from sample_models.base import Plain, seeded
from sample_models.trainings.plan import Plan, one

TRAINING = {
    "name": "training-exploding",
    "title": "Gradients that explode",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "gradient norms in the thousands, products of Jacobians that grow with the lag, a loss that stays high",
}
WINDOW, ROWS = 40, 8


def draw(generator: torch.Generator) -> Plain:
    """Windows of the book."""
    return text.draw(generator, WINDOW, ROWS)


def build() -> Plan:
    """32 tanh units, Adam, no clipping."""
    with seeded():
        rnn = nn.RNN(text.EMBEDDED, 32, batch_first=True)
        nn.init.orthogonal_(rnn.get_parameter("weight_hh_l0"), gain=3.0)
        model = text.character_rnn(rnn)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return Plan(model, optimizer, draw, text.next_character_loss, one(draw), steps=400, every=5, probe_every=100)
