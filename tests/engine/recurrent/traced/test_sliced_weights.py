"""A cell whose weights are slices of one parameter, made before the loop: also in a run without a loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import inspector


class Sliced(nn.Module):
    """A GRU with the reset gate before the product."""

    def __init__(self) -> None:
        super().__init__()
        self.given, self.state = nn.Linear(3, 12), nn.Parameter(torch.randn(4, 12) / 2)

    def forward(self, x: Tensor) -> Tensor:
        h, rows = x.new_zeros(len(x), 4), []
        gates, candidate = self.state[:, :8], self.state[:, 8:]
        for given in self.given(x).unbind(1):
            z, r = torch.sigmoid(given[:, :8] + h @ gates).chunk(2, -1)
            h = z * h + (1 - z) * torch.tanh(given[:, 8:] + (r * h) @ candidate)
            rows.append(h)
        return torch.stack(rows, 1)


def test_states_of_a_run_without_a_loss() -> None:
    torch.manual_seed(0)
    model, x = Sliced(), torch.randn(7, 3)
    with inspector.run(model, x) as capture:
        weight, bias, state = (
            one.detach().double().numpy() for one in (model.given.weight, model.given.bias, model.state)
        )
        h, known = np.zeros(4), []
        for row in x.double().numpy():
            given = weight @ row + bias
            z, r = np.split(1 / (1 + np.exp(-(given[:8] + h @ state[:, :8]))), 2)
            h = z * h + (1 - z) * np.tanh(given[8:] + (r * h) @ state[:, 8:])
            known.append(h)
        np.testing.assert_allclose(capture.array("model:h"), np.array(known), atol=1e-6)
        assert not [one for one in capture.refusals if "fault" in one.reason]
