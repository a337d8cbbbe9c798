"""Bilinear score sᵀWh with the query s_t, S14: a matrix translates between the states of both sides.

Reference: Luong, Pham & Manning (2015), who call it general.
"""

from __future__ import annotations

from sample_models.base import Sample, seeded
from sample_models.date_decoders import Bilinear, DateModel, Encoder, QueryAfter, date_sample

SAMPLE = {
    "name": "dates-bilinear",
    "row": "S14",
    "title": "Attention, bilinear score, query after the step",
    "task": "dates in written English: say them in ISO's form",
    "shows": "a matrix between query and keys: which units of both sides meet",
}


def build() -> Sample:
    """20 units in each direction, 40 in the decoder, untrained."""
    with seeded():
        model = DateModel(Encoder(), QueryAfter(Bilinear()))
    return date_sample("dates-bilinear", model)
