"""Many to many, S11: after every bracket an LSTM says which bracket would close the innermost one that is open.

A counter does not suffice: with three kinds of brackets, up to four deep, the cell has to hold a stack.
Trained, its loss is 0.0002 nat a step, and every answer on new sequences is right.
"""

from __future__ import annotations

from torch import nn

from sample_models import tasks
from sample_models.base import Sample, Training, seeded
from sample_models.readers import TokenTransducer

SAMPLE = {
    "name": "transducer-brackets",
    "row": "S11",
    "title": "Many to many: nested brackets",
    "task": "after every bracket: which one would close the innermost that is open",
    "shows": "cell states that hold a stack, gates that open at the same depth, a loss at every step",
}


def build() -> Sample:
    """32 units, untrained."""
    with seeded():
        model = TokenTransducer(nn.LSTM(6, 32, batch_first=True), 6, len(tasks.BRACKETS), len(tasks.CLOSING))
    return Sample(
        model=model, name="transducer-brackets", kind="tokens", vocabulary=tasks.BRACKETS, labels=tasks.CLOSING,
        loss=tasks.brackets_loss, training=Training(tasks.brackets, rate=1e-2),
        examples={
            "nested": "([{}]())[{()}]{[()]}",
            "deep": "([{()}])" * 4, "flat": "()[]{}" * 4, "one that does not fit": "([{])}",
        },
    )  # fmt: skip
