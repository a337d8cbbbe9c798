"""The second step of the ladder to the LSTM, S10, on the adding problem: c_t = f ⊙ c_{t−1} + i ⊙ c̃, h_t = tanh(c_t).

Now a unit can add to what it holds: unit 2 holds its number between the two marks, `forget_gate` near 0.95 and
`input_gate` near 0.08, as a long-term memory does.
Trained, its loss is 0.0005 (half the squared error); always saying 1 costs 1/12 = 0.083.
"""

from __future__ import annotations

from sample_models.adding import adding_sample
from sample_models.base import Sample, seeded
from sample_models.cells import TwoGatesCell, UnrolledWithMemory

SAMPLE = {
    "name": "ladder-two-gates",
    "row": "S10",
    "title": "Ladder to the LSTM: input and forget gates",
    "task": "the sum of the two marked numbers among 20 to 40, asked for at the end",
    "shows": "input and forget gates apart: f ≈ 1 with i ≈ 0 is long-term memory",
}


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        return adding_sample("ladder-two-gates", UnrolledWithMemory(TwoGatesCell(2, 24)))
