"""The Elman network started with W_hh = 3 Q (Q orthogonal), S5: gradients explode.

At step 0 the products of Jacobians grow with the lag (by a factor of thousands within twenty characters) although
tanh saturates. Trained like the others, with clipping, it hardly learns: after 3,200 steps it is no better than
counting characters (4.7 bits each). That is what it is there to show.
Reference: Pascanu, Mikolov & Bengio (2013).
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
    """64 tanh units with a recurrent matrix three times an orthogonal one."""
    return elman("char-elman-exploding", gain=3.0)
