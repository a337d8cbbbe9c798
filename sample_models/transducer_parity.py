"""Many to many, S11: after every bit an Elman network says whether the number of ones so far is even or odd.

The loss stands at every step, and every answer needs all bits before it. The state has to flip between two regions;
look at the units by similarity.
Trained on 8 to 24 bits, it makes no mistake in 200.
"""

from __future__ import annotations

from torch import nn

from sample_models import tasks
from sample_models.base import Sample, Training, seeded
from sample_models.readers import TokenTransducer

SAMPLE = {
    "name": "transducer-parity",
    "row": "S11",
    "title": "Many to many: parity of bits",
    "task": "after every bit: is the number of ones so far even or odd",
    "shows": "a loss at every step, two regions of the state, lengths that differ",
}


def build() -> Sample:
    """16 tanh units, untrained."""
    with seeded():
        model = TokenTransducer(nn.RNN(4, 16, batch_first=True), 4, len(tasks.BITS), 2)
    return Sample(
        model=model, name="transducer-parity", kind="tokens", vocabulary=tasks.BITS, labels=("even", "odd"),
        loss=tasks.parity_loss, training=Training(tasks.parity, rate=1e-2, steps=1600),
        examples={"mixed": "0110100110010110", "ones": "1" * 20, "one": "0001" + "0" * 16, "long": "01101" * 9},
    )  # fmt: skip
