"""Captions of composed pictures, S20: a grid of features as the memory of a transformer decoder with two heads."""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.caption_models import Transformer, caption_sample

SAMPLE = {
    "name": "captions-transformer",
    "row": "S20",
    "title": "Captions with attention, transformer",
    "task": "a picture of two digits: say which they are and how they lie",
    "shows": "each word's attention in two heads over the picture, beside its gradient and blanked patches",
}


def build() -> Sample:
    """24 features a cell, untrained."""
    with seeded():
        model = Transformer()
    return caption_sample("captions-transformer", model)
