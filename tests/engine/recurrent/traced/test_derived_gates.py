"""Gates computed from a softmax or a sigmoid by more than one minus it: what multiplies the state is shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from watched import seen

D, IN, H, T = torch.float64, 3, 4, 7


class Gated(nn.Module):
    def __init__(self, gate: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.gate, self.map = gate, nn.Linear(IN + H, 2 * H)
        self.open: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        h, out, self.open = x.new_zeros(len(x), H), [], []
        for row in x.unbind(1):
            a, b = self.map(torch.cat((row, h), -1)).chunk(2, -1)
            master = self.gate(a)
            self.open.append(master.detach())
            h = master * h + (1 - master) * torch.tanh(b)
            out.append(h)
        return torch.stack(out, 1)


def cumulative(a: Tensor) -> Tensor:
    master = torch.softmax(a, -1).cumsum(-1)
    return master


def falling(a: Tensor) -> Tensor:
    master = 1 - torch.cumsum(a.softmax(-1), dim=-1)
    return master


def straight_through(a: Tensor) -> Tensor:
    p = torch.sigmoid(a)
    master = (p > 0.5).to(p) - p.detach() + p
    return master


def rounded(a: Tensor) -> Tensor:
    p = torch.sigmoid(a)
    master = p + (p.round() - p).detach()
    return master


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("gate", [cumulative, falling, straight_through, rounded], ids=lambda one: one.__name__)
def test_what_multiplies_the_state_is_the_gate(gate: Callable[[Tensor], Tensor], batch: int) -> None:
    torch.manual_seed(0)
    model = Gated(gate).to(D)
    (found,), kept, _ = seen(model, torch.randn(batch, T, IN, dtype=D), quantities=("states", "gates"))
    assert found.check is not None and found.check.passed
    assert not [one for one in kept.refusals() if not one.channel.endswith("detached_parts")]
    np.testing.assert_allclose(kept.array("model:gate/master"), torch.stack(model.open[-T:])[:, 0], rtol=1e-12)
    assert "keeps it between 0 and 1" in str(kept.channel("model:gate/master").formula)


def test_a_sigmoid_that_is_only_shifted_is_no_rounded_gate() -> None:
    torch.manual_seed(0)
    model = Gated(lambda a: torch.sigmoid(a) + 0.1 * (a > 0).to(a)).to(D)
    _, kept, _ = seen(model, torch.randn(2, T, IN, dtype=D), quantities=("states", "gates"))
    assert "model:gate/master" not in kept.names()
