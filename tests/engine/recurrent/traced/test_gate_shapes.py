"""Sigmoids of other shapes than the state's, in batches of one and of several."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import inspector

HIDDEN, HEADS, WIDTH, STEPS = 4, 3, 5, 6


class Mixer(nn.Module):
    """A step with a sigmoid of one axis and one of two axes of its own, both narrower or wider than the state."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2 + HIDDEN, HIDDEN)
        self.row = nn.Linear(HIDDEN, WIDTH)
        self.plane = nn.Linear(HIDDEN, HEADS * WIDTH)
        self.back = nn.Linear(WIDTH, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), HIDDEN), []
        for x_t in x.unbind(1):
            row = torch.sigmoid(self.row(h))
            plane = torch.sigmoid(self.plane(h).view(len(x), HEADS, WIDTH))
            h = torch.tanh(self.inner(torch.cat([x_t, h], 1)) + self.back(row * plane.sum(1)))
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_gate_has_one_axis_of_its_own_whatever_the_batch(batch: int) -> None:
    torch.manual_seed(0)
    with inspector.run(Mixer(), [torch.randn(STEPS, 2) for _ in range(batch)], only=("states", "gates")) as capture:
        gates = [name for name in capture.channels if ":gate/" in name]
        assert [name.rpartition(":")[2] for name in gates] == ["gate/row"]
        assert capture.extent(gates[0]) == (STEPS, WIDTH)
