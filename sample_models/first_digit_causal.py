"""Masked attention, S15: a step sees itself and what came before it, and answers at once."""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-causal",
    "row": "S15",
    "title": "Masked self-attention",
    "task": "which of three to ten digits came first",
    "shows": "a causal mask: no weight on what comes later, one answer at every step",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-causal", causal=True)
