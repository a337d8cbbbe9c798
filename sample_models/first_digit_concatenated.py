"""Positions put beside the embedding, not added, S17: eight numbers of a step say where it is, sixteen which digit."""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-concatenated",
    "row": "S17",
    "title": "Sinusoidal positions, put beside the embedding",
    "task": "which of three to ten digits came first",
    "shows": "eight numbers that say where, beside sixteen that say which",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-concatenated", "concatenated")
