"""Gated recurrent unit on text, S9, as PyTorch computes it: h_t = (1 − z) ⊙ n + z ⊙ h_{t−1}, so z = 1 keeps.

Look at the update gate: units with z near 1 throughout are slow, those that follow z near 0 copy the input; the
memory timescales are spread over more than a decade.
"""

from __future__ import annotations

from torch import nn

from sample_models.base import Sample, seeded
from sample_models.text import EMBEDDED, character_rnn, character_sample

SAMPLE = {
    "name": "char-gru",
    "row": "S9",
    "title": "GRU, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "reset and update gates, their saturation, and memory timescales unit by unit",
}


def build() -> Sample:
    """One layer of 48 units, untrained."""
    with seeded():
        model = character_rnn(nn.GRU(EMBEDDED, 48, batch_first=True))
    return character_sample("char-gru", model)
