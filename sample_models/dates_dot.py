"""Dot score h·s with the query s_t, S14: the decoder moves before it looks, and the score has no weights of its own.

Reference: Luong, Pham & Manning (2015).
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.date_decoders import DateModel, Dot, Encoder, QueryAfter, date_sample

SAMPLE = {
    "name": "dates-dot",
    "row": "S14",
    "title": "Attention, dot score, query after the step",
    "task": "dates in written English: say them in ISO's form",
    "shows": "a score without weights of its own: states of both sides have to become alike",
}


def build() -> Sample:
    """20 units in each direction, 40 in the decoder, untrained."""
    with seeded():
        model = DateModel(Encoder(), QueryAfter(Dot()))
    return date_sample("dates-dot", model)
