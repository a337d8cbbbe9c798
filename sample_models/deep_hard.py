"""Twelve layers with hard skip connections, S8: h_n = (1 − t) tanh(W h_{n−1} + b) + t h_{n−1}, t either 0 or 1.

Each image has a path of its own through the layers; look at the direct path by layer: where it is 1, the layer's
Jacobian is the identity, and the image passes by. The gate itself learns by the slope of σ (straight-through), which is
part of the gradients but not of the Jacobians: a small change of h changes no hard gate.
Trained, it names 94 of 100 held-out digits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.deep import HardSkipLayer, deep_sample

SAMPLE = {
    "name": "deep-hard",
    "row": "S8",
    "title": "Deep net, hard skip connections",
    "task": "which digit: an 8 × 8 image read at once",
    "shows": "a carry gate that is 0 or 1: layers that an image uses, and layers that it passes by unchanged",
}


def build() -> Sample:
    """Twelve layers of 16 units, untrained."""
    return deep_sample("deep-hard", HardSkipLayer)
