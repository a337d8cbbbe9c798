"""An Elman network trained without clipping its gradients, S4: the norm of the gradient has spikes.

It starts with W_hh = 1.2 Q (Q orthogonal), where gradients grow with the lag, and learns fast. Its `history.json`
holds the loss and the norm of the gradient of every step of training: what a threshold would have clipped can be read
off.
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
    """64 tanh units, W_hh a little above the edge of stability, no threshold."""
    return elman("char-elman-unclipped", gain=1.2, clip=None, rate=1e-2)
