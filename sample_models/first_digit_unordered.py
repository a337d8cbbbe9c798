"""Self-attention without positions, S15: whatever the order of the digits, each gets the same output.

Its loss stays near what guessing among the digits of a sequence costs, however long it is trained.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.first_digit import first_digit_sample

SAMPLE = {
    "name": "first-digit-unordered",
    "row": "S15",
    "title": "Self-attention without positions",
    "task": "which of three to ten digits came first",
    "shows": "permutation equivariance: whatever the order of the digits, the answer is the same",
}


def build() -> Sample:
    """Width 24, one head, untrained."""
    return first_digit_sample("first-digit-unordered", "none")
