"""Keyword-only arguments: a picture, a caption, and an optional initial state.

inspector run docs/examples/captioner.py:make
"""

from types import SimpleNamespace

import torch
from torch import nn


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.words = nn.Conv2d(3, 24, 5), nn.Embedding(6, 8)
        self.rnn, self.head = nn.GRU(8, 24, batch_first=True), nn.Linear(24, 6)

    def forward(self, *, image, caption, start=None):
        seen = self.look(image).amax((2, 3))[None]
        return self.head(self.rnn(self.words(caption), seen if start is None else start)[0])


def make():
    inputs = {
        "image": {"kind": "image", "shape": (3, 16, 16)},
        "caption": {"kind": "tokens", "vocabulary": ["<", "a", "red", "black", "cat", "."]},
        "start": {"kind": "state", "shape": (1, 24), "batch_dim": 1, "optional": True},
    }
    examples = {"a cat": {"image": torch.rand(3, 16, 16), "caption": [0, 1, 3, 4, 5]}}
    return SimpleNamespace(model=Captioner(), inputs=inputs, next_token=True, examples=examples)
