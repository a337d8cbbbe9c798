"""Outputs as of Hugging Face's models: an object with `logits`, and `loss` where labels were given.

inspector run docs/examples/language_model.py:make
"""

from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(50, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 50)

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.head(self.rnn(self.embedding(input_ids))[0])
        if labels is None:
            return Output(logits)
        return Output(logits, nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:]))


def make():
    inputs = {
        "input_ids": {"kind": "tokens", "size": 50},
        "attention_mask": {"kind": "mask", "of": "input_ids"},
        "labels": {"kind": "tokens", "size": 50, "axis": "input_ids", "padding": -100},
    }
    ids = [3, 14, 15, 9, 26, 5, 35]
    return SimpleNamespace(model=LanguageModel(), inputs=inputs, examples={"some ids": (ids, ids)})
