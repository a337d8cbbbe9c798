"""Cells that run at some steps only (a slow layer, a clockwork RNN): their gates at these steps, NaN at the others.

The reference computes torch's GRU cell from its formula, in a plain loop.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from watched import seen

D = torch.float64
IN, H, T = 3, 4, 9


class TwoSpeeds(nn.Module):
    """Two GRU cells that read each other's state; cell k runs at the steps that `runs` says, in this order."""

    order: tuple[int, ...] = (0, 1)

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(IN + H, H) for _ in range(2))

    def runs(self, k: int, t: int) -> bool:
        return k == 0 or t % 2 == 1

    def forward(self, x: Tensor) -> Tensor:
        states, out = [x.new_zeros(len(x), H), x.new_zeros(len(x), H)], []
        for t, row in enumerate(x.unbind(1)):
            first, second = self.order
            if self.runs(first, t):
                states[first] = self.cells[first](torch.cat((row, states[second]), -1), states[first])
            if self.runs(second, t):
                states[second] = self.cells[second](torch.cat((row, states[first]), -1), states[second])
            out.append(torch.cat(states, -1))
        return torch.stack(out, 1)


class SlowFirst(TwoSpeeds):
    order = (1, 0)


class Clockwork(TwoSpeeds):
    """Each pauses at steps of its own."""

    def runs(self, k: int, t: int) -> bool:
        return t % 3 != 1 + k


class InnerLoop(TwoSpeeds):
    """The cells are called by a loop within the step."""

    def forward(self, x: Tensor) -> Tensor:
        states, out = [x.new_zeros(len(x), H), x.new_zeros(len(x), H)], []
        for t in range(x.shape[1]):
            for k in range(2):
                if self.runs(k, t):
                    states[k] = self.cells[k](torch.cat((x[:, t], states[1 - k]), -1), states[k])
            out.append(torch.cat(states, -1))
        return torch.stack(out, 1)


class InnerClockwork(InnerLoop):
    """Each pauses at steps of its own."""

    def runs(self, k: int, t: int) -> bool:
        return t % 3 != 1 + k


class InnerAlways(InnerLoop):
    def runs(self, k: int, t: int) -> bool:
        return k >= 0 <= t


class ByData(SlowFirst):
    """Cell 1 runs where the input says so."""

    def runs(self, k: int, t: int) -> bool:
        return k == 0 or t in (0, 1, 4, 5, 8)


def gates(cell: nn.GRUCell, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(reset, update, next state)."""
    (r, z, n), (p, q, m) = (cell.weight_ih @ x + cell.bias_ih).chunk(3), (cell.weight_hh @ h + cell.bias_hh).chunk(3)
    r, z = torch.sigmoid(r + p), torch.sigmoid(z + q)
    return r, z, (1 - z) * torch.tanh(n + r * m) + z * h


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize(
    "kind",
    [TwoSpeeds, *TwoSpeeds.__subclasses__(), InnerClockwork, InnerAlways, ByData],
    ids=lambda kind: kind.__name__,
)
def test_gates_are_shown_at_the_steps_at_which_the_cell_runs(kind: type[TwoSpeeds], b: int) -> None:
    torch.manual_seed(b)
    model, x = kind().to(D), torch.randn(b, T, IN, dtype=D)
    (found,), kept, _ = seen(model, x, quantities=("states", "gates"))
    assert not kept.reasons() and found.check is not None and found.check.passed
    assert (found.steps, found.domain) == (T, "step")
    expected = np.full((2, 2, T, H), np.nan)
    states = [torch.zeros(H, dtype=D), torch.zeros(H, dtype=D)]
    with torch.no_grad():
        for t in range(T):
            for k in model.order:
                if model.runs(k, t):
                    cell = model.cells[k]
                    assert isinstance(cell, nn.GRUCell)
                    reset, update, states[k] = gates(cell, torch.cat((x[0, t], states[1 - k])), states[k])
                    expected[k, 0, t], expected[k, 1, t] = reset.numpy(), update.numpy()
    shown = {name: kept.array(f"model:gate/{name}") for name in ("reset", "update", "reset#2", "update#2")}
    for end, k in zip(("", "#2"), model.order, strict=True):
        np.testing.assert_allclose(shown[f"reset{end}"], expected[k, 0], rtol=1e-9, err_msg=f"cell {k}")
        np.testing.assert_allclose(shown[f"update{end}"], expected[k, 1], rtol=1e-9, err_msg=f"cell {k}")
