"""The last step of the ladder to the LSTM, S10, on the adding problem: c_t = f ⊙ c_{t−1} + i ⊙ c̃, h_t = o ⊙ tanh(c_t).

The output gate decides when the memory is shown to the other units. Compare the direct path of the Jacobian, diag(f),
with the path through h. Trained, its loss is 0.0008 (half the squared error); always saying 1 costs 1/12 = 0.083.
"""

from __future__ import annotations

from sample_models.adding import adding_sample
from sample_models.base import Sample, seeded
from sample_models.cells import TextbookLstmCell, UnrolledWithMemory

SAMPLE = {
    "name": "ladder-lstm",
    "row": "S10",
    "title": "Ladder to the LSTM: the whole LSTM",
    "task": "the sum of the two marked numbers among 20 to 40, asked for at the end",
    "shows": "three gates; the direct path diag(f) of the Jacobian beside the path through h",
}


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        return adding_sample("ladder-lstm", UnrolledWithMemory(TextbookLstmCell(2, 24)))
