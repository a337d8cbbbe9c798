"""Hard attention, S15: each query takes the value at the largest weight alone."""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-hard",
    "row": "S15",
    "title": "Hard self-attention",
    "task": "which of three to ten digits came first",
    "shows": "weights that are 0 or 1: the argmax of the softmax, with the gradient of the softmax",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-hard", hard=True)
