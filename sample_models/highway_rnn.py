"""Highway recurrence on text, S9, by hand: h_t = (1 − t) ⊙ h̃ + t ⊙ h_{t−1} with a carry gate t for every unit.

It is the single-gate recurrence seen from the other side: t = 1 keeps. The gate's bias starts at 1, so the state is
carried at first; look at how the gates close over the checkpoints.
Trained, it needs 2.74 bits a character on held-out text; counting characters needs 4.7.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.cells import HighwayCell
from sample_models.text import EMBEDDED, written

SAMPLE = {
    "name": "highway-rnn",
    "row": "S9",
    "title": "Highway network through time, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "the carry gate t by unit and step, open at the start and closing with training",
}


def build() -> Sample:
    """36 units, untrained."""
    with seeded():
        return written("highway-rnn", HighwayCell(EMBEDDED, 36))
