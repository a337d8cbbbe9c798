"""Fixed context as the decoder's first state, S13: what the encoder's last state does not hold is lost.

The state of 48 numbers is the only thing that the decoder knows of the date. Reference: Sutskever, Vinyals & Le (2014).
"""

from __future__ import annotations

from sample_models.base import SAVED_AT, Sample, seeded
from sample_models.date_decoders import DateModel, Encoder, FixedState, date_sample

SAMPLE = {
    "name": "dates-state",
    "row": "S13",
    "title": "Encoder and decoder: fixed context as first state",
    "task": "dates in written English: say them in ISO's form",
    "shows": "one state that has to hold the whole date, gradients from each step of the answer back through it",
}


def build() -> Sample:
    """48 units on each side, untrained."""
    with seeded():
        model = DateModel(Encoder(48, both=False), FixedState(48))
    return date_sample("dates-state", model, steps=SAVED_AT[-1])
