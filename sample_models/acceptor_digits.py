"""Many to one, S11: a GRU reads the eight rows of a digit and says which it is after the last.

The loss stands at the last real step of each sequence; in a batch of different lengths the padding behind it is
neither read out nor reached by a gradient.
Trained, it names 95 of 100 held-out digits.
"""

from __future__ import annotations

from torch import nn

from sample_models.base import Sample, seeded
from sample_models.digits import NAMES, digits_sample
from sample_models.readers import Acceptor, with_lengths

SAMPLE = {
    "name": "acceptor-digits",
    "row": "S11",
    "title": "Many to one: digits by rows",
    "task": "which digit: 8 × 8 images read as eight rows",
    "shows": "a loss at the last step only, gradients that travel back over eight rows, padding",
}


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        model = Acceptor(nn.GRU(8, 24, batch_first=True), len(NAMES))
    return digits_sample("acceptor-digits", model, (8, 8), forward=with_lengths, steps=1600)
