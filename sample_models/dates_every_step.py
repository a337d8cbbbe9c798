"""Fixed context at every step, S13: the encoder's last state enters each step of the decoder, which begins with zeros.

No step has to keep it for the next one, so the gradient of a late symbol has a short way to the encoder. Reference: Cho
et al. (2014).
"""

from __future__ import annotations

from sample_models.base import SAVED_AT, Sample, seeded
from sample_models.date_decoders import DateModel, Encoder, FixedEveryStep, date_sample

SAMPLE = {
    "name": "dates-every-step",
    "row": "S13",
    "title": "Encoder and decoder: fixed context at every step",
    "task": "dates in written English: say them in ISO's form",
    "shows": "the same context beside every symbol: a short way back for the gradient of each step of the answer",
}


def build() -> Sample:
    """40 units on each side, untrained."""
    with seeded():
        model = DateModel(Encoder(both=False), FixedEveryStep())
    return date_sample("dates-every-step", model, steps=SAVED_AT[-1])
