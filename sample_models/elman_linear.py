"""Linear recurrent network on text, S1: h_t = U x_t + W h_{t−1} + b, written by hand, no activation.

Every step Jacobian is W itself: its products by lag are the powers of W, and nothing depends on the text. Look at the
norms by step, which are one number, and at the eigenvalues beside those of W.
Trained, it needs 3.14 bits a character on held-out text; counting characters needs 4.7.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.text import activated_elman

SAMPLE = {
    "name": "elman-linear",
    "row": "S1",
    "title": "Linear recurrent network",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "step Jacobians that are all W, products that are its powers, and what a network learns without any slope",
}


def build() -> Sample:
    """40 units, W started orthogonal, untrained."""
    return activated_elman("elman-linear", "identity")
