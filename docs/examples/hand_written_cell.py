"""A recurrence written as a loop: the state, the gates and the step are found without changes to the code, under their
names.

inspector run docs/examples/hand_written_cell.py:make
"""

from types import SimpleNamespace

import torch
from torch import nn


class MinimalGatedUnit(nn.Module):
    """One gate for forgetting and for writing (Zhou, Wu, Zhang & Zhou 2016), a hundred random steps of vectors."""

    def __init__(self, inputs=4, hidden=16):
        super().__init__()
        self.forget_x, self.forget_h = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden, bias=False)
        self.new_x, self.new_h = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden, bias=False)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        state = x.new_zeros(len(x), self.forget_h.in_features)
        outputs = []
        for t in range(x.shape[1]):
            forget = torch.sigmoid(self.forget_x(x[:, t]) + self.forget_h(state))
            candidate = torch.tanh(self.new_x(x[:, t]) + self.new_h(forget * state))
            state = (1 - forget) * state + forget * candidate
            outputs.append(self.head(state))
        return torch.stack(outputs, 1)


def loss(output, batch):
    """(b, t): only the last step has a loss, on the sum of the first feature over all steps (the adding problem)."""
    errors = torch.full(output.shape[:2], torch.nan)
    errors[:, -1] = (output[:, -1, 0] - batch.inputs[:, :, 0].sum(1)) ** 2
    return errors


def make(hidden=16):
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(100, 4, generator=generator)
    return SimpleNamespace(
        model=MinimalGatedUnit(4, hidden), kind="vectors", width=4, loss=loss, examples={"noise": noise}
    )
