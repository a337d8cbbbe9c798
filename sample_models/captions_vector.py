"""Captions of composed pictures, S20: the features of a convolutional network as one vector into a recurrent decoder.

Nothing is attended to. After Vinyals et al. (2015), Show and tell.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.caption_models import Recurrent, caption_sample

SAMPLE = {
    "name": "captions-vector",
    "row": "S20",
    "title": "Captions from one vector",
    "task": "a picture of two digits: say which they are and how they lie",
    "shows": "no attention at all: gradients and blanked patches say where a word is from",
}


def build() -> Sample:
    """24 features a cell, untrained."""
    with seeded():
        model = Recurrent(None)
    return caption_sample("captions-vector", model)
