"""Cells in styles of their own: states, gradients at them, and Jacobians against plain autograd.

The reference adds a zero of its own to each new state, in the same model; nothing of the app is in it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from watched import seen

D = torch.float64
IN, H, T = 3, 4, 7
sigma, tanh = torch.sigmoid, torch.tanh


class Cell(nn.Module):
    """`held` is applied to every new state h; the app sees it as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(IN, 4 * H), nn.Linear(H, 4 * H)
        self.a, self.v = nn.Linear(IN + H, H), nn.Linear(H, H)
        self.held: Callable[[Tensor], Tensor] = lambda h: h

    def start(self, x: Tensor) -> Tensor:
        return x.new_full((len(x), H), 0.1)

    def plain(self, row: Tensor, h: Tensor) -> Tensor:
        return self.held(tanh(self.a(torch.cat((row, h), -1))))


class ByRow(Cell):
    """`step` in a plain loop."""

    def step(self, row: Tensor, h: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.start(x), []
        for row in x.unbind(1):
            h = self.held(self.step(row, h))
            out.append(h)
        return torch.stack(out, 1)


class WhileThereIsMore(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h, out, rows = self.start(x), [], iter(x.unbind(1))
        while (row := next(rows, None)) is not None:
            h = self.plain(row, h)
            out.append(h)
        return torch.stack(out, 1)


class Reduced(Cell):
    """`reduce` over a list that grows."""

    def forward(self, x: Tensor) -> Tensor:
        start = [self.start(x)]
        states = functools.reduce(lambda past, row: [*past, self.plain(row, past[-1])], x.unbind(1), start)
        return torch.stack(states[1:], 1)


class Accumulated(Cell):
    def forward(self, x: Tensor) -> Tensor:
        states = itertools.accumulate(x.unbind(1), lambda h, row: self.plain(row, h), initial=self.start(x))
        return torch.stack(list(states)[1:], 1)


class Sent(Cell):
    """A generator that is sent the rows."""

    def steps(self, h: Tensor) -> Iterator[Tensor]:
        row = yield h  # type: ignore[misc]
        while True:
            h = self.plain(row, h)
            row = yield h  # type: ignore[misc]

    def forward(self, x: Tensor) -> Tensor:
        steps = self.steps(self.start(x))
        next(steps)
        return torch.stack([steps.send(row) for row in x.unbind(1)], 1)  # type: ignore[attr-defined]


class Nonlocal(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)

        def step(row: Tensor) -> Tensor:
            nonlocal h
            h = self.held(0.9 * h + 0.5 * tanh(self.a(torch.cat((row, h), -1))))
            return h

        return torch.stack([step(row) for row in x.unbind(1)], 1)


@dataclasses.dataclass(frozen=True)
class Both:
    h: Tensor
    c: Tensor


class Replaced(Cell):
    """An LSTM whose state is a frozen dataclass."""

    def forward(self, x: Tensor) -> Tensor:
        state, out = Both(self.start(x), self.start(x) * 2), []
        for row in x.unbind(1):
            i, f, g, o = (self.w(row) + self.u(state.h)).chunk(4, -1)
            c = sigma(f) * state.c + sigma(i) * tanh(g)
            state = dataclasses.replace(state, c=c, h=self.held(sigma(o) * tanh(c)))
            out.append(state.h)
        return torch.stack(out, 1)


class Peephole(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h, c, out = self.start(x), self.start(x) * 2, []
        for row in x.unbind(1):
            i, f, g, o = torch.tensor_split(self.w(row) + self.u(h), 4, dim=1)
            i, f = sigma(i + self.v.weight[0] * c), sigma(f + self.v.weight[1] * c)
            c = torch.addcmul(f * c, i, tanh(g))
            h = self.held(sigma(o + self.v.weight[2] * c) * tanh(c))
            out.append(h)
        return torch.stack(out, 1)


class FastWeights(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h, fast, out = self.start(x), x.new_zeros(len(x), H, H), []
        for row in x.unbind(1):
            fast = 0.9 * fast + 0.5 * h[:, :, None] * h[:, None, :]
            h = self.held(tanh(self.a(torch.cat((row, h), -1)) + torch.bmm(fast, h[:, :, None])[:, :, 0]))
            out.append(h)
        return torch.stack(out, 1)


class Lerp(ByRow):
    def step(self, row: Tensor, h: Tensor) -> Tensor:
        return torch.lerp(h, tanh(self.v(h)), sigma(self.a(torch.cat((row, h), -1))))


class Normed(ByRow):
    def step(self, row: Tensor, h: Tensor) -> Tensor:
        return tanh(functional.layer_norm(self.a(torch.cat((row, h), -1)), (H,)))


class NormedBefore(ByRow):
    """The state is normalised where it is read."""

    def step(self, row: Tensor, h: Tensor) -> Tensor:
        small = h / (1 + h.norm(dim=-1, keepdim=True))
        return torch.relu(self.a(torch.cat((row, small), -1))) + 0.1 * small


class Multiplicative(ByRow):
    def step(self, row: Tensor, h: Tensor) -> Tensor:
        return tanh(self.w(row)[:, :H] * self.v(h) + self.u(h)[:, H : 2 * H])


class Einsum(ByRow):
    def step(self, row: Tensor, h: Tensor) -> Tensor:
        return tanh(torch.einsum("bi,hi->bh", row, self.w.weight[:H]) + torch.einsum("bg,hg->bh", h, self.u.weight[:H]))


class Blocks(ByRow):
    """Units in two groups that do not read each other."""

    def step(self, row: Tensor, h: Tensor) -> Tensor:
        weight = self.v.weight[:2].reshape(2, 2, 2)
        inner = torch.einsum("bgi,gij->bgj", h.view(-1, 2, 2), weight).reshape(-1, H)
        return tanh(inner + self.w(row)[:, :H])


class Midpoint(ByRow):
    """A step of a differential equation by the midpoint rule."""

    def step(self, row: Tensor, h: Tensor) -> Tensor:
        half = tanh(self.a(torch.cat((row, h), -1)))
        return h + 0.2 * tanh(self.a(torch.cat((row, h + 0.5 * half), -1)))


class Maxout(ByRow):
    def step(self, row: Tensor, h: Tensor) -> Tensor:
        return tanh((self.w(row) + self.u(h)).view(-1, H, 4).amax(-1))


class Halves(ByRow):
    """The second half reads the new first half."""

    def step(self, row: Tensor, h: Tensor) -> Tensor:
        first = tanh(self.w(row)[:, :2] + self.v(h)[:, :2])
        return torch.cat((first, tanh(h[:, 2:] * first + self.w(row)[:, 2:4])), -1)


class Ahead(Cell):
    """Input products and a mask of all steps first, read by zip."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.start(x), []
        for given, on in zip(self.w(x).unbind(1), (x[..., 0] > -0.3).unbind(1), strict=True):
            z, n, *_ = (given + self.u(h)).chunk(4, -1)
            keep = sigma(z)
            h = self.held(torch.where(on[:, None], keep * h + (1 - keep) * tanh(n), h))
            out.append(h)
        return torch.stack(out, 1)


def reference(model: Cell, x: Tensor) -> tuple[Tensor, Tensor]:
    """(∂L/∂h_t (t, b, h), ∂h_t/∂h_{t−1} of the first sample with what else is carried in between (t − 1, h, h))."""
    added: list[Tensor] = []
    states: list[Tensor] = []

    def held(h: Tensor) -> Tensor:
        added.append(torch.zeros_like(h, requires_grad=True))
        states.append(h + added[-1])
        return states[-1]

    model.held = held
    loss = model(x).square().sum()
    model.held = lambda h: h
    deltas = torch.autograd.grad(loss, added, retain_graph=True)
    rows = [
        torch.stack([torch.autograd.grad(unit, added[t], retain_graph=True)[0][0] for unit in states[t + 1][0]])
        for t in range(T - 1)
    ]
    return torch.stack(deltas), torch.stack(rows)


KINDS = [*(kind for kind in Cell.__subclasses__() if kind is not ByRow), *ByRow.__subclasses__()]


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_states_gradients_and_jacobians(kind: type[Cell], b: int) -> None:
    torch.manual_seed(3)
    model, x = kind().to(D), torch.randn(b, T, IN, dtype=D)
    (found,), kept, _ = seen(model, x, quantities=("states", "gradients", "bptt"))
    assert found.check is not None and found.check.passed and found.delta is not None
    assert {one.channel for one in kept.refusals()} <= {"model:bptt/computed_ahead"}
    part = found.cell.parts["h"]
    with torch.no_grad():
        torch.testing.assert_close(found.states[1:, :, part], model(x).movedim(1, 0))
    deltas, jacobians = reference(model, x)
    torch.testing.assert_close(found.delta[..., part], deltas)
    shown = found.block(0, T).jacobian()[:, 0]
    if len(found.cell.parts) == 1:
        torch.testing.assert_close(shown[1:], jacobians)
    errors = [kept.scalar(f"{name}/check_error") for name in kept.names()
              if ":bptt/" in name and not name.endswith("/lag")]  # fmt: skip
    assert errors and max(errors) < 1e-12
