"""States of which only an older value is read: all initial values, Jacobians from the first step on, gradients."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.recurrent.traced.cells.replayed import ReplayBlock

D = torch.float64
X, H, T = 3, 4, 8


class Older(nn.Module):
    """h_t = tanh(W x_t + U h_{t−lag} + V h_{t−1}), the last term where `both`; the first states are `starts`."""

    lag, both = 2, False

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)
        self.starts = nn.Parameter(torch.randn(3, H))

    def start(self, x: Tensor, before: int) -> Tensor:
        """The state so many steps before the first one."""
        return self.starts[before].expand(len(x), H)

    def step(self, row: Tensor, old: Tensor) -> Tensor:
        return torch.tanh(self.w(row) + self.u(old))


class InAList(Older):
    def forward(self, x: Tensor) -> Tensor:
        hs = [self.start(x, 1), self.start(x, 0)]
        for row in x.unbind(1):
            hs.append(self.step(row, hs[-2]))
        return torch.stack(hs[2:], 1)


class Exchanged(Older):
    def forward(self, x: Tensor) -> Tensor:
        a, b, out = self.start(x, 1), self.start(x, 0), []
        for row in x.unbind(1):
            a, b = b, self.step(row, a)
            out.append(b)
        return torch.stack(out, 1)


class OneStart(Older):
    """Both initial values are one tensor."""

    def start(self, x: Tensor, before: int) -> Tensor:
        return self.starts[0].expand(len(x), H)

    def forward(self, x: Tensor) -> Tensor:
        old = now = self.start(x, 0)
        out = []
        for row in x.unbind(1):
            new = self.step(row, old)
            old, now = now, new
            out.append(new)
        return torch.stack(out, 1)


class Queue(Older):
    lag = 3

    def forward(self, x: Tensor) -> Tensor:
        past, out = deque((self.start(x, n) for n in (2, 1, 0)), maxlen=3), []
        for row in x.unbind(1):
            past.append(self.step(row, past[0]))
            out.append(past[-1])
        return torch.stack(out, 1)


class FromTheOutput(Older):
    """The first steps read zeros that they make."""

    def start(self, x: Tensor, before: int) -> Tensor:
        return x.new_zeros(len(x), H)

    def forward(self, x: Tensor) -> Tensor:
        out: list[Tensor] = []
        for t in range(x.shape[1]):
            out.append(self.step(x[:, t], out[t - 2] if t >= 2 else x.new_zeros(len(x), H)))
        return torch.stack(out, 1)


class ByName(Older):
    def forward(self, x: Tensor) -> Tensor:
        memory, out = {"now": self.start(x, 0), "old": self.start(x, 1)}, []
        for row in x.unbind(1):
            new = self.step(row, memory["old"])
            memory["old"], memory["now"] = memory["now"], new
            out.append(new)
        return torch.stack(out, 1)


class Both(Older):
    """The newest and an older one."""

    both = True

    def forward(self, x: Tensor) -> Tensor:
        older, old, out = self.start(x, 1), self.start(x, 0), []
        for row in x.unbind(1):
            older, old = old, torch.tanh(self.w(row) + self.u(older) + self.v(old))
            out.append(old)
        return torch.stack(out, 1)


def equation(model: Older, row: Tensor, state: Tensor) -> Tensor:
    """The state (h_t, h_{t−1}, …) after one step of one sample."""
    parts = state.chunk(model.lag)
    a = model.w.weight @ row + model.w.bias + model.u.weight @ parts[-1] + model.u.bias
    if model.both:
        a = a + model.v.weight @ parts[0] + model.v.bias
    return torch.cat((torch.tanh(a), *parts[:-1]))


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("kind", Older.__subclasses__(), ids=lambda kind: kind.__name__)
def test_older_states(kind: Any, b: int) -> None:
    torch.manual_seed(b)
    model, x = kind().to(D), torch.randn(b, T, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.check is not None and found.check.passed
    name = next(iter(found.cell.parts))
    assert list(found.cell.parts) == [name, f"{name}[t-1]", f"{name}[t-2]"][: model.lag]
    jacobians = found.block(0, T).jacobian()
    for n in range(b):
        state = torch.cat([model.start(x, before)[n] for before in range(model.lag)]).detach()
        torch.testing.assert_close(found.states[0, n], state)
        for t in range(T):
            step = torch.autograd.functional.jacobian(lambda s, n=n, t=t: equation(model, x[n, t], s), state)
            torch.testing.assert_close(jacobians[t, n], step)
            state = equation(model, x[n, t], state).detach()
            torch.testing.assert_close(found.states[t + 1, n], state)
    assert found.delta is not None
    for n, t in ((0, 0), (b - 1, T // 2), (0, T - 1)):
        leaf = found.states[t + 1, n].detach().clone().requires_grad_()
        state, loss = leaf, leaf[:H].square().sum()
        for later in range(t + 1, T):
            state = equation(model, x[n, later], state)
            loss = loss + state[:H].square().sum()
        (expected,) = torch.autograd.grad(loss, leaf)
        torch.testing.assert_close(found.delta[t, n], expected)


def test_the_direct_path_is_computed_once_for_a_step_that_reads_many_older_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And its own older values have none: each becomes the next older one."""

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.query = nn.GRUCell(3, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            h = x.new_zeros(len(x), 4)
            past = [torch.tanh(h)]
            for row in x.unbind(1):
                new = self.cell(row, h)
                keys = torch.stack(past, 1)
                weights = torch.softmax((keys * self.query(new)[:, None]).sum(-1), -1)
                h = new + 0.5 * (weights[..., None] * keys).sum(1)
                past.append(h)
            return torch.stack(past[1:], 1)

    (found,), _, _ = seen(Attending().double(), torch.randn(1, 7, 3).double(), quantities=("states", "gates"))
    calls: list[ReplayBlock] = []
    whole = ReplayBlock.direct

    def counted(block: ReplayBlock) -> Tensor | None:
        calls.append(block)
        return whole(block)

    monkeypatch.setattr(ReplayBlock, "direct", counted)
    found.stored.clear()
    first = memory_gate_of(found)
    assert memory_gate_of(found) is first and len(calls) == 1
    direct = found.block(0, found.steps).direct()
    older = [part for name, part in found.cell.parts.items() if "[t-" in name]
    assert older and direct is not None and not any(bool(direct[..., part].any()) for part in older)
