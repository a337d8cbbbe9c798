"""The Elman network started with W_hh = 0.1 Q (Q orthogonal), S5: gradients vanish.

At step 0 every lag costs a factor of at least ten (σ₁(W_hh) = 0.1), so nothing earlier than a few characters is
felt. Reference: Pascanu, Mikolov & Bengio (2013).
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.text import elman

SAMPLE = {
    "name": "char-elman-vanishing",
    "row": "S5",
    "title": "Elman network, started too small",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "step Jacobians far below 1 and a horizon of three steps at step 0, and how training widens it",
}


def build() -> Sample:
    """64 tanh units with a recurrent matrix a tenth of an orthogonal one."""
    return elman("char-elman-vanishing", gain=0.1)
