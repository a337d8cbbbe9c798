"""Elman network on the adding problem, S2: of 15 to 30 numbers two are marked, and their sum is wanted at the end.

The loss stands at the last step only, so everything that W learns is ∂ℓ_T/∂h_T times products of Jacobians: look at
the contributions by (t, k), of which one row is not empty.
Trained, its loss is 0.005 (half the squared error); always saying 1 costs 1/12 = 0.083.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from sample_models.adding import adding_sample
from sample_models.base import Sample, seeded
from sample_models.measures import orthogonality

SAMPLE = {
    "name": "adding-elman",
    "row": "S2",
    "title": "Elman network, adding problem",
    "task": "the sum of the two marked numbers among 15 to 30, asked for at the end",
    "shows": "backpropagation through time from one loss at the end; contributions that peak at the marked steps",
}


def build() -> Sample:
    """32 tanh units, W started as 0.9 times an orthogonal matrix, untrained."""
    with seeded():
        rnn = nn.RNN(2, 32, batch_first=True)
        nn.init.orthogonal_(rnn.get_parameter("weight_hh_l0"), 0.9)
        sample = adding_sample("adding-elman", rnn, longest=30, rate=2e-3, steps=4800)
    steps = torch.from_numpy(sample.examples["30 steps"])
    assert sample.training is not None
    sample.training.measure = partial(orthogonality, rnn, steps)
    return sample
