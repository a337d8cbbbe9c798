"""Elman network on text, S1: h_t = tanh(W_ih x_t + W_hh h_{t−1} + b), y_t = V h_t + b_y.

Look at the step Jacobian diag(1 − h²) W_hh: its norm stays below the bound σ₁(W_hh), and the products decay with
the lag: what was read twenty characters ago hardly moves the state.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.text import elman

SAMPLE = {
    "name": "char-elman",
    "row": "S1",
    "title": "Elman network, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "states, the step Jacobian beside its bound, products of Jacobians that decay with the lag",
}


def build() -> Sample:
    """64 tanh units, untrained."""
    return elman("char-elman")
