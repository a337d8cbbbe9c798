"""Long short-term memory on text, S10, two layers: c_t = f ⊙ c_{t−1} + i ⊙ g, h_t = o ⊙ tanh(c_t).

Look at the cell state beside the gates: units whose forget gate stays near 1 carry something over many characters
(the place in a line, an open quotation); the c → c block of the Jacobian is the largest forget gate.
"""

from __future__ import annotations

from torch import nn

from sample_models.base import Sample, seeded
from sample_models.text import EMBEDDED, character_rnn, character_sample

SAMPLE = {
    "name": "char-lstm",
    "row": "S10",
    "title": "LSTM, two layers, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "gates, cell states that hold over lines, the constant error carousel, gradients through two layers",
}


def build() -> Sample:
    """Two layers of 32 units, untrained."""
    with seeded():
        model = character_rnn(nn.LSTM(EMBEDDED, 32, 2, batch_first=True))
    return character_sample("char-lstm", model, rate=6e-3)
