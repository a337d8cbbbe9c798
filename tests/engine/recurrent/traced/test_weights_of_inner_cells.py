"""The recurrent matrices of torch's own cells inside a larger step: gate by gate, beside those of the step's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.recurrent.traced.cells.replayed import ReplayStep

H, T = 5, 7
GATES = {
    nn.GRUCell: ("reset", "update", "candidate"), nn.LSTMCell: ("input", "forget", "candidate", "output"),
    nn.RNNCell: ("hidden",),
}  # fmt: skip


class Fed(nn.Module):
    """A cell whose input has a part of its state; `masked`: its state is multiplied beforehand."""

    def __init__(self, kind: Any, masked: bool = False) -> None:
        super().__init__()
        self.cell, self.back, self.masked = kind(H, H), nn.Linear(H, H), masked

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), H)
        out = []
        for row in x.unbind(1):
            given = h * (row[:, :1] < 1).to(x.dtype) if self.masked else h
            if isinstance(self.cell, nn.LSTMCell):
                h, c = self.cell(row + self.back(h), (given, c))
            else:
                h = self.cell(row + self.back(h), given)
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", list(GATES), ids=lambda one: one.__name__)
def test_every_gate_of_a_cell_with_feedback_has_its_spectrum(kind: Any, masked: bool) -> None:
    torch.manual_seed(0)
    model = Fed(kind, masked).double()
    (found,), kept, _ = seen(model, torch.randn(2, T, H, dtype=torch.float64), quantities=("weight/spectrum",))
    assert isinstance(found.cell, ReplayStep)
    blocks = dict(zip(GATES[kind], model.cell.weight_hh.detach().chunk(len(GATES[kind])), strict=True))
    weights = {one.signal: one for one in found.cell.recurrent_weights()}
    assert set(weights) == {"back.weight", *blocks} and all(one.gain is None for one in weights.values())
    for signal, block in blocks.items():
        assert torch.equal(weights[signal].matrix, block)
        values = kept.array(f"{found.place}:weight/{signal}/singular_values")
        np.testing.assert_allclose(values, np.linalg.svd(block.numpy(), compute_uv=False), rtol=1e-10)


def test_a_cell_that_does_not_carry_this_state_is_not_listed() -> None:
    class Beside(nn.Module):
        """The cell begins at 0 in every step."""

        def __init__(self) -> None:
            super().__init__()
            self.cell, self.back = nn.GRUCell(H, H), nn.Linear(H, H)

        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), H), []
            for row in x.unbind(1):
                h = torch.tanh(self.back(h) + self.cell(row + h, torch.ones_like(h)))
                out.append(h)
            return torch.stack(out, 1)

    (found,), _, _ = seen(Beside(), torch.randn(2, T, H))
    assert [one.signal for one in found.cell.recurrent_weights()] == ["back.weight"]
