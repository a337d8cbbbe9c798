"""A character model with a loss: the least that gives states, gates, Jacobians, gradients and surprise.

inspector run docs/examples/own_model.py:make --text "hello hello"
inspector run docs/examples/own_model.py:make --arguments '{"hidden": 64}' --checkpoint last.pt
"""

from types import SimpleNamespace

import torch
from torch import nn

LETTERS = " abcdefghijklmnopqrstuvwxyz"


class CharLSTM(nn.Module):
    """Ids (b, t) to logits (b, t, v)."""

    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 16)
        self.rnn = nn.LSTM(16, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(LETTERS))

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


def loss(logits, batch):
    """(b, t): the cross-entropy of the character that comes next; NaN at the last step, which has none."""
    losses = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(losses, (0, 1), value=torch.nan)


def make(hidden=32):
    """What `--arguments` fills in are the parameters of this function."""
    return SimpleNamespace(
        model=CharLSTM(hidden),
        vocabulary=LETTERS,
        loss=loss,
        next_token=True,
        examples={"a sentence": "the quick brown fox jumps over the lazy dog"},
    )
