"""An Elman network trained without clipping its gradients, S4: the norm of the gradient has spikes.

It starts with W_hh = 2 Q (Q orthogonal), where gradients grow with the lag until tanh saturates. `history.json` beside
its checkpoints holds the loss and the gradient's norm of every step of training: what a threshold would have clipped
can be read off. The norm reaches 871 at step 59, twelve hundred times its median, and exceeds 1 in 42 of 100 steps.
Trained, it needs 4.1 bits a character on held-out text; char-elman, started smaller and clipped, needs 2.5.
Reference: Pascanu, Mikolov & Bengio (2013).
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.text import elman

SAMPLE = {
    "name": "char-elman-unclipped",
    "row": "S4",
    "title": "Elman network, trained without clipping",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "spikes of the gradient's norm, what a threshold would clip, states that saturate",
}


def build() -> Sample:
    """64 tanh units, W_hh twice an orthogonal matrix, no threshold."""
    return elman("char-elman-unclipped", gain=2.0, clip=None)
