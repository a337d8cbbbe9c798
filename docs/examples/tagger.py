"""A model that reads one dictionary: a sequence of vectors, and the speaker's number beside it.

inspector run docs/examples/tagger.py:make
"""

from types import SimpleNamespace

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.speaker, self.rnn, self.head = nn.Embedding(5, 13), nn.LSTM(13, 24, batch_first=True), nn.Linear(24, 4)

    def forward(self, batch: dict[str, torch.Tensor]):
        return self.head(self.rnn(batch["sound"] + self.speaker(batch["speaker"])[:, None])[0])


def make():
    inputs = {"sound": {"kind": "vectors", "width": 13}, "speaker": {"kind": "other"}}
    examples = {"a hum": {"sound": torch.randn(40, 13), "speaker": torch.tensor(3)}}
    return SimpleNamespace(model=Tagger(), inputs=inputs, labels=["a", "e", "o", "–"], examples=examples)
