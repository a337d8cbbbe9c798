"""The first step of the ladder to the LSTM, S10, on the adding problem:
c_t = f ⊙ c_{t−1} + (1 − f) ⊙ c̃, h_t = tanh(c_t).

Look at `forget_gate`: what is let in replaces as much of what was there, so a unit keeps its number only while its gate
is near 1. Trained, its loss is 0.0004 (half the squared error); always saying 1 costs 1/12 = 0.083.
"""

from __future__ import annotations

from sample_models.adding import adding_sample
from sample_models.base import Sample, seeded
from sample_models.cells import MixCell, UnrolledWithMemory

SAMPLE = {
    "name": "ladder-mix",
    "row": "S10",
    "title": "Ladder to the LSTM: one gate, c a convex mix",
    "task": "the sum of the two marked numbers among 20 to 40, asked for at the end",
    "shows": "what is written costs what is kept: gate and candidate of a memory that is a convex mix",
}


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        return adding_sample("ladder-mix", UnrolledWithMemory(MixCell(2, 24)))
