"""Gates that only the output reads: shown with the gates of the step, and said to be no part of the recurrence.

The reference is what the model itself computed, kept in a list; the recurrence and its memory gate are as without them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.analyses.memory_gate import memory_gate_of

D, N, T = torch.float64, 4, 7


class Sru(nn.Module):
    """Lei et al. 2018: c = f c + (1 − f) W x; h = r tanh(c) + (1 − r) x. r is the highway gate."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.f, self.r = nn.Linear(N, N), nn.Linear(N, N), nn.Linear(N, N)
        self.open: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        c, out, self.open = x.new_zeros(len(x), N), [], []
        for row in x.unbind(1):
            f, r = torch.sigmoid(self.f(row)), torch.sigmoid(self.r(row))
            self.open.append(r.detach())
            c = f * c + (1 - f) * self.w(row)
            out.append(r * torch.tanh(c) + (1 - r) * row)
        return torch.stack(out, 1)


class Peephole(Sru):
    """The highway gate reads the state before the step."""

    def forward(self, x: Tensor) -> Tensor:
        c, out, self.open = x.new_zeros(len(x), N), [], []
        for row in x.unbind(1):
            f = torch.sigmoid(self.f(row))
            r = torch.sigmoid(self.r(row) + 0.3 * c)
            self.open.append(r.detach())
            c = f * c + (1 - f) * self.w(row)
            out.append(r * c + (1 - r) * row)
        return torch.stack(out, 1)


class Ahead(Sru):
    """All gates are computed before the loop."""

    def forward(self, x: Tensor) -> Tensor:
        forget, r = torch.sigmoid(self.f(x)), torch.sigmoid(self.r(x))
        content, c, out, self.open = self.w(x), x.new_zeros(len(x), N), [], []
        for t in range(x.shape[1]):
            self.open.append(r[:, t].detach())
            c = forget[:, t] * c + (1 - forget[:, t]) * content[:, t]
            out.append(r[:, t] * torch.tanh(c) + (1 - r[:, t]) * x[:, t])
        return torch.stack(out, 1)


class Chunked(Sru):
    """All gates of one product, taken apart."""

    def forward(self, x: Tensor) -> Tensor:
        c, out, self.open = x.new_zeros(len(x), N), [], []
        for row in x.unbind(1):
            weights = torch.cat((self.f.weight, self.r.weight))
            f, r = torch.sigmoid(row @ weights.T).chunk(2, -1)
            self.open.append(r.detach())
            c = f * c + (1 - f) * self.w(row)
            out.append(torch.tanh(c).mul(r))
        return torch.stack(out, 1)


class NotFedBack(Sru):
    """The output gate of an LSTM whose output is not fed back; it reads the new state."""

    def forward(self, x: Tensor) -> Tensor:
        c, out, self.open = x.new_zeros(len(x), N), [], []
        for row in x.unbind(1):
            f = torch.sigmoid(self.f(row) + 0.1 * c)
            c = f * c + (1 - f) * torch.tanh(self.w(row))
            r = torch.sigmoid(self.r(row) + c)
            self.open.append(r.detach())
            h = r * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("kind", [Sru, Peephole, Ahead, Chunked, NotFedBack], ids=lambda kind: kind.__name__)
def test_a_gate_that_only_the_output_reads_is_shown_as_that(kind: type[Sru], batch: int) -> None:
    torch.manual_seed(0)
    model = kind().to(D)
    (found,), kept, _ = seen(model, torch.randn(batch, T, N, dtype=D), quantities=("states", "gates"))
    assert not kept.refusals() and found.check is not None and found.check.passed and list(found.cell.parts) == ["c"]
    np.testing.assert_allclose(kept.array("model:gate/r"), torch.stack(model.open[-T:])[:, 0], rtol=1e-12)
    formula = kept.channel("model:gate/r").formula
    assert formula is not None and "only the output reads it" in formula
    memory = memory_gate_of(found)
    assert memory is not None and memory.signal in ("gate/f", "gate/forget") and memory.high
    others = [name for name in found.cell.gate_names if name != "gate/r"]
    assert all("only the output" not in str(kept.channel(f"model:{name}").formula) for name in others)


class Layers(nn.Module):
    """Two layers in one loop: the gates of the second multiply what is made of the first one's state."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(2 * N, 2 * N) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        h = g = x.new_zeros(len(x), N)
        out = []
        for row in x.unbind(1):
            z, a = self.maps[0](torch.cat((row, h), -1)).chunk(2, -1)
            z = torch.sigmoid(z)
            h = z * h + (1 - z) * torch.tanh(a)
            u, b = self.maps[1](torch.cat((h, g), -1)).chunk(2, -1)
            u = torch.sigmoid(u)
            g = u * g + (1 - u) * torch.tanh(b) * h
            out.append(g)
        return torch.stack(out, 1)


def test_gates_of_another_state_are_not_gates_of_the_output() -> None:
    found, kept, _ = seen(Layers().to(D), torch.randn(2, T, N, dtype=D), quantities=("states", "gates"))
    names = [[signal for signal in one.cell.gate_names if signal.startswith("gate/")] for one in found]
    assert names in ([["gate/z"], ["gate/u"]], [["gate/z", "gate/u"]])
    assert not [name for name in kept.names() if ":gate/" in name and "only the" in str(kept.channel(name).formula)]
