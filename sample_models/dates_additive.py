"""Additive score vᵀ tanh(W[s; h]) with the query s_{t-1}, S14: the decoder looks before it moves.

Look at the attention of the decoder: which characters it looks at for the year, the month and the day, wherever these
stand, and that it looks at nothing in particular for a hyphen. Reference: Bahdanau, Cho & Bengio (2015).
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.date_decoders import Additive, DateModel, Encoder, QueryBefore, date_sample

SAMPLE = {
    "name": "dates-additive",
    "row": "S14",
    "title": "Attention, additive score, query before the step",
    "task": "dates in written English: say them in ISO's form",
    "shows": "the alignment of each symbol of the answer with the characters read, row by row",
}


def build() -> Sample:
    """20 units in each direction, 40 in the decoder, untrained."""
    with seeded():
        model = DateModel(Encoder(), QueryBefore(Additive()))
    return date_sample("dates-additive", model)
