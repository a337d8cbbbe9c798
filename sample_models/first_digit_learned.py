"""Learned positions, added to the embedding, S17. Training has ten; the others keep the values that they began with."""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-learned",
    "row": "S17",
    "title": "Learned positions, added",
    "task": "which of three to ten digits came first",
    "shows": "positions as parameters: those beyond the longest sequence of training keep their first values",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-learned")
