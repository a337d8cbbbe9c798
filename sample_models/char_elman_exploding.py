"""The Elman network started with W_hh = 4 Q (Q orthogonal), S5: gradients explode.

At step 0 the products of Jacobians grow with the lag until tanh saturates; trained without clipping, so the traces
of it stay visible over the checkpoints. Reference: Pascanu, Mikolov & Bengio (2013).
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.text import elman

SAMPLE = {
    "name": "char-elman-exploding",
    "row": "S5",
    "title": "Elman network, started too large",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "step Jacobians above 1, products that grow with the lag at step 0, saturated units",
}


def build() -> Sample:
    """64 tanh units with a recurrent matrix four times an orthogonal one; no gradient clipping."""
    return elman("char-elman-exploding", gain=4.0, clip=None)
