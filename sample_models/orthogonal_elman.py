"""Elman network whose recurrent matrix stays orthogonal while it learns, S6: digits read pixel by pixel.

torch.nn.utils.parametrizations.orthogonal makes W_hh from free parameters, so all its singular values are 1 at every
checkpoint; the step Jacobian diag(1 − h²) W can shrink a gradient, never stretch it.
References: Arjovsky, Shah & Bengio (2016); Lezcano-Casado & Martínez-Rubio (2019).
Trained, it names 91 of 100 held-out digits.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn.utils.parametrizations import orthogonal

from sample_models.base import Sample, seeded
from sample_models.digits import NAMES, digits_sample
from sample_models.measures import orthogonality
from sample_models.readers import Acceptor, with_lengths

SAMPLE = {
    "name": "orthogonal-elman",
    "row": "S6",
    "title": "Elman network, orthogonal recurrence",
    "task": "which digit: 8 × 8 images read as 64 pixels, one after the other",
    "shows": "‖WᵀW − I‖ at rounding level over training, singular values of the step Jacobian never above 1",
}


def build() -> Sample:
    """48 tanh units, untrained."""
    with seeded():
        rnn = nn.RNN(1, 48, batch_first=True)
        nn.init.orthogonal_(rnn.get_parameter("weight_hh_l0"))
        orthogonal(rnn, "weight_hh_l0")
        model = Acceptor(rnn, len(NAMES))
    sample = digits_sample("orthogonal-elman", model, (64, 1), forward=with_lengths)
    a_digit = torch.from_numpy(sample.examples["a 3"][0])
    assert sample.training is not None
    sample.training.measure = partial(orthogonality, rnn, a_digit)
    return sample
