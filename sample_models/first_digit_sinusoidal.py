"""Sinusoidal positions, added to the embedding, S17. Reference: Vaswani et al. (2017)."""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-sinusoidal",
    "row": "S17",
    "title": "Sinusoidal positions, added",
    "task": "which of three to ten digits came first",
    "shows": "what the encoding makes of equal digits at different positions",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-sinusoidal", "sinusoidal")
