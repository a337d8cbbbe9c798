"""Twelve layers with dynamic skip connections, S8: h_n = (1 − t) tanh(W h_{n−1} + b) + t h_{n−1}, one t a layer.

The carry gate t depends on the image; look at which layers are passed by, and for which digits.
Trained, it names 97 of 100 held-out digits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.deep import DynamicSkipLayer, deep_sample

SAMPLE = {
    "name": "deep-dynamic",
    "row": "S8",
    "title": "Deep net, dynamic skip connections",
    "task": "which digit: an 8 × 8 image read at once",
    "shows": "one carry gate a layer, learned: which layers are used and which are passed by",
}


def build() -> Sample:
    """Twelve layers of 16 units, untrained."""
    return deep_sample("deep-dynamic", DynamicSkipLayer)
