"""Elman network that reads a digit pixel by pixel, S1: 64 steps of one number, asked for the digit after the last.

The loss stands at the last step, and most of what decides a digit lies thirty and more steps before it: look at how far
the gradient reaches back, and at the lag curve that starts at 1 because W starts orthogonal.
Trained, it names 95 of 100 held-out digits.
"""

from __future__ import annotations

from torch import nn

from sample_models.base import Sample, seeded
from sample_models.digits import NAMES, digits_sample
from sample_models.readers import Acceptor, with_lengths

SAMPLE = {
    "name": "pixels-elman",
    "row": "S1",
    "title": "Elman network, digits by pixels",
    "task": "which digit: an 8 × 8 image read as 64 pixels",
    "shows": "a loss 64 steps away from the first pixel, gradients that have to travel that far, states that hold them",
}


def build() -> Sample:
    """48 tanh units, W started orthogonal, untrained."""
    with seeded():
        rnn = nn.RNN(1, 48, batch_first=True)
        nn.init.orthogonal_(rnn.get_parameter("weight_hh_l0"))
        model = Acceptor(rnn, len(NAMES))
    return digits_sample("pixels-elman", model, (64, 1), rate=2e-3, forward=with_lengths, steps=3200)
