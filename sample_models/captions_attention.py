"""Captions of composed pictures, S20: a grid of features that a recurrent decoder attends to before each word.

After Xu et al. (2015), Show, attend and tell.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.caption_models import attending, caption_sample

SAMPLE = {
    "name": "captions-attention",
    "row": "S20",
    "title": "Captions with attention, recurrent",
    "task": "a picture of two digits: say which they are and how they lie",
    "shows": "each word's attention over the picture, beside its gradient and blanked patches, which disagree",
}


def build() -> Sample:
    """24 features a cell, untrained."""
    with seeded():
        model = attending()
    return caption_sample("captions-attention", model)
