"""A score W[s; h] without a nonlinearity, S14: a trap. W[s; h] = w_s·s + w_h·h, and softmax over h does not see w_s·s.

So every symbol of the answer is given the same weighted mean, whatever the decoder's state is, and w_s has no gradient.
What the date is has to come through the encoder's last state and that mean: attention costs as much as before and
chooses nothing.
"""

from __future__ import annotations

from sample_models.base import SAVED_AT, Sample, seeded
from sample_models.date_decoders import DateModel, Encoder, LinearScore, QueryBefore, date_sample

SAMPLE = {
    "name": "dates-linear-score",
    "row": "S14",
    "title": "Attention, score without tanh: the query cancels",
    "task": "dates in written English: say them in ISO's form",
    "shows": "attention whose rows are all the same: the decoder cannot choose where to look",
}


def build() -> Sample:
    """20 units in each direction, 40 in the decoder, untrained."""
    with seeded():
        model = DateModel(Encoder(), QueryBefore(LinearScore()))
    return date_sample("dates-linear-score", model, steps=SAVED_AT[-1])
