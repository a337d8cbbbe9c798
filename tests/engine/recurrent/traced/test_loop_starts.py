"""What a loop begins with and goes back to: first values that are shared, broadcast, made on the way or taken again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from equations import affine, compare, lstm_step, tanh
from torch import Tensor, nn
from watched import seen

D = torch.float64
X, H, T = 3, 4, 11


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)
        self.first = nn.Parameter(torch.randn(1, H))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(self.loop(x, x.new_zeros(len(x), H)), 1)

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def equations(self, _: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """h' = tanh(W x + U h)."""
        return tanh(affine(self.w, x) + affine(self.u, h)), {}


class Plain(Base):
    def begin(self, x: Tensor) -> Tensor:
        return self.first

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for row in x.unbind(1):
            h = torch.tanh(self.w(row) + self.u(h))
            out.append(h)
        return out


class Row(Plain):
    def begin(self, x: Tensor) -> Tensor:
        return self.first[0]


class Expanded(Plain):
    def begin(self, x: Tensor) -> Tensor:
        return self.first.expand(len(x), -1)


class Number(Plain):
    def begin(self, x: Tensor) -> Tensor:
        return torch.tensor(0.5, dtype=x.dtype)

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for row in x.unbind(1):
            h = torch.tanh(self.w(row) + 0.7 * h)
            out.append(h)
        return out

    def equations(self, _: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return tanh(affine(self.w, x) + 0.7 * h), {}


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kind", [Plain, Row, Expanded, Number])
def test_one_row_for_all_sequences_is_the_first_state_of_each(kind: Any, b: int) -> None:
    """The Jacobian of the first step too."""
    torch.manual_seed(0)
    model = kind().to(D)
    start = torch.full((H,), 0.5, dtype=D) if kind is Number else model.first[0].detach()
    compare(model, torch.randn(b, T, X, dtype=D), model.equations, start=start, shown=lambda h: h)


def test_h_and_c_that_begin_with_one_tensor_are_two() -> None:
    class Lstm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(X + H, 4 * H)
            self.first = nn.Parameter(torch.randn(2, H))

        def forward(self, x: Tensor) -> Tensor:
            h = c = self.first
            out = []
            for row in x.unbind(1):
                i, f, g, o = self.map(torch.cat((row, h), -1)).chunk(4, -1)
                i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
                c = f * c + i * g
                h = o * torch.tanh(c)
                out.append(h)
            return torch.stack(out, 1)

    torch.manual_seed(0)
    model, x = Lstm().to(D), torch.randn(2, T, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and list(found.cell.parts) == ["h", "c"]
    torch.testing.assert_close(found.states[0], model.first.detach().repeat(1, 2))
    for n in range(2):
        exact = torch.autograd.functional.jacobian(
            lambda state, n=n: lstm_step(model.map, x[n, 0], state)[0], found.states[0, n].clone()
        )
        torch.testing.assert_close(found.block(0, 1).jacobian()[0, n], exact)


@pytest.mark.parametrize("begin", ["[zeros] * 2", "two zeros", "a parameter"])
def test_layers_that_begin_with_one_tensor_stay_apart(begin: str) -> None:
    class Layers(Base):
        def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
            shared = {"[zeros] * 2": [h] * 2, "two zeros": [h, torch.zeros_like(h)]}
            states, out = shared.get(begin, [self.first, self.first]), []
            for row in x.unbind(1):
                states[0] = torch.tanh(self.w(row) + self.u(states[0]))
                states[1] = torch.tanh(states[0] + self.v(states[1]))
                out.append(states[1])
            return out

    torch.manual_seed(0)
    model, x = Layers().to(D), torch.randn(2, T, X, dtype=D)
    (low, high), kept, _ = seen(model, x)
    assert not kept.reasons() and [list(one.cell.parts) for one in (low, high)] == [["h"], ["h"]]
    for found, layer in ((low, model.u), (high, model.v)):
        exact = (1 - found.states[1:].square())[..., None] * layer.weight.detach()
        torch.testing.assert_close(found.block(0, T).jacobian(), exact)
        assert found.check is not None and found.check.passed


class Reset(Base):
    """Back to the first state at the begin of every sentence."""

    every = 4

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        first, out = h, []
        for t, row in enumerate(x.unbind(1)):
            h = torch.tanh(self.w(row) + self.u(first if t % self.every == 0 else h))
            out.append(h)
        return out

    def equations(self, t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return super().equations(t, x, 0 * h if t % self.every == 0 and t else h)


class SetBack(Reset):
    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        first, out = h, []
        for t, row in enumerate(x.unbind(1)):
            if t % self.every == 0:
                h = first
            h = torch.tanh(self.w(row) + self.u(h))
            out.append(h)
        return out


class NewZeros(SetBack):
    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t, row in enumerate(x.unbind(1)):
            if t % self.every == 0 and t:
                h = torch.zeros_like(h)
            h = torch.tanh(self.w(row) + self.u(h))
            out.append(h)
        return out


@pytest.mark.parametrize("steps", [T, 90])
@pytest.mark.parametrize("kind", [Reset, SetBack, NewZeros])
def test_a_reset_is_no_lag(kind: Any, steps: int) -> None:
    torch.manual_seed(0)
    model = kind().to(D)
    compare(model, torch.randn(1, steps, X, dtype=D), model.equations)


def test_what_the_first_iteration_alone_makes_takes_nothing_along() -> None:
    class Context(Base):
        def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
            context, out = h, []
            for t, row in enumerate(x.unbind(1)):
                if t == 0:
                    context = torch.tanh(self.v(row.sum(-1, keepdim=True).expand(-1, H)))
                h = torch.tanh(self.w(row) + self.u(h) + context)
                out.append(h)
            return out

    torch.manual_seed(0)
    model, x = Context().to(D), torch.randn(1, T, X, dtype=D)
    context = torch.tanh(model.v(x[0, 0].sum().expand(H))).detach()

    def equations(_: int, row: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return tanh(affine(model.w, row) + affine(model.u, h) + context), {}

    compare(model, x, equations)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("period", [2, 3, 5])
def test_branches_that_take_turns_make_one_state(period: int, shared: bool) -> None:
    """Also where they have no operation in common: the bytecode says that one round has only one of them."""

    class Turns(Base):
        def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
            out = []
            for t, row in enumerate(x.unbind(1)):
                a = self.w(row) if shared else None
                if t % period == 0:
                    h = torch.relu((self.w(row) if a is None else a) + self.v(h))
                elif t % period == 1:
                    h = torch.tanh((self.w(row) if a is None else a) + self.u(h))
                else:
                    h = torch.sigmoid(self.u(h))
                out.append(h)
            return out

    torch.manual_seed(0)
    model = Turns().to(D)

    def equations(t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        if t % period == 0:
            return (affine(model.w, x) + affine(model.v, h)).clamp(min=0), {}
        if t % period == 1:
            return tanh(affine(model.w, x) + affine(model.u, h)), {}
        return 1 / (1 + torch.exp(-affine(model.u, h))), {}

    compare(model, torch.randn(2, T, X, dtype=D), equations)


class Oscillator(nn.Module):
    """Position and velocity; the position's own line only adds, and so does the velocity's where there is no map."""

    parts = ("v", "q")

    def __init__(self, mapped: bool) -> None:
        super().__init__()
        self.w, self.k = nn.Linear(X, H), nn.Linear(H, H, bias=False) if mapped else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        q, v, out = x.new_ones(len(x), H), x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            q = q + 0.1 * v
            v = v - 0.1 * self.k(q) + self.w(row)
            out.append(q)
        return torch.stack(out, 1)

    def equations(self, _: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        v, q = state.chunk(2)
        q = q + 0.1 * v
        force = q @ self.k.weight.T if isinstance(self.k, nn.Linear) else q
        return torch.cat((v - 0.1 * force + affine(self.w, x), q)), {}


class OnlyAdds(Oscillator):
    """Both lines only add: one alone would be a running sum, together they turn."""

    parts = ("q", "v")

    def forward(self, x: Tensor) -> Tensor:
        q, v, out = x.new_ones(len(x), H), x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            q = q + v
            v = v - q + self.w(row)
            out.append(q)
        return torch.stack(out, 1)

    def equations(self, _: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        q, v = state.chunk(2)
        q = q + v
        return torch.cat((q, v - q + affine(self.w, x))), {}


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("model", [Oscillator(True), Oscillator(False), OnlyAdds(False)], ids=["map", "plain", "adds"])
def test_an_oscillator_whose_states_only_add_is_one_recurrence(model: Oscillator, b: int) -> None:
    torch.manual_seed(0)
    begin = {"q": torch.ones(H, dtype=D), "v": torch.zeros(H, dtype=D)}
    start = torch.cat([begin[part] for part in model.parts])
    found = compare(model.to(D), torch.randn(b, T, X, dtype=D), model.equations, parts=model.parts, start=start)
    assert found.place == "model" and found.delta is not None
    assert bool(found.delta[0, :, found.cell.parts["q"]].isnan().all()), "nothing before it takes a gradient"
    assert not bool(found.delta[1:].isnan().any()) and not bool(found.arriving.isnan().any())


class Slow(Base):
    """h is left as it is at most steps, perhaps from the begin; c reads it at every one."""

    begin = 0

    def after(self, t: int, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        c = torch.tanh(self.w(x) + self.u(h) + c)
        return (torch.sigmoid(self.v(c) + h) if t % 3 == self.begin else h), c

    def forward(self, x: Tensor) -> Tensor:
        h, c = (x.new_zeros(len(x), H) for _ in range(2))
        for t, row in enumerate(x.unbind(1)):
            h, c = self.after(t, row, h, c)
        return (h + 2 * c)[:, None].expand(-1, x.shape[1], -1)


@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("steps", [T, T + 1])
def test_the_gradient_of_a_state_that_a_step_leaves_as_it_was(steps: int, begin: int, monkeypatch: Any) -> None:
    """The loss sees the last state only, so every gradient is that of the steps that follow."""
    torch.manual_seed(0)
    monkeypatch.setattr(Slow, "begin", begin)
    model, x = Slow().to(D), torch.randn(2, steps, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    parts = found.cell.parts
    assert not kept.reasons() and set(parts) == {"h", "c"}
    assert found.delta is not None and found.arriving is not None
    for t in range(steps):
        leaf = found.states[t + 1, 1].clone().requires_grad_()
        h, c = leaf[parts["h"]], leaf[parts["c"]]
        for later in range(t + 1, steps):
            h, c = model.after(later, x[1, later], h, c)
        (expected,) = torch.autograd.grad(steps * (h + 2 * c).square().sum(), leaf)
        torch.testing.assert_close(found.delta[t, 1], expected)
        torch.testing.assert_close(found.arriving[t, 1], expected * (t == steps - 1))


def test_one_round_of_another_kind_between_others_is_a_step_too() -> None:
    """Four steps, the second of which shares no operation with the others."""

    class Odd(Base):
        def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
            out = []
            for t, row in enumerate(x.unbind(1)):
                h = torch.relu(self.v(h)) if t == 1 else torch.tanh(self.w(row) + self.u(h))
                out.append(h)
            return out

        def equations(self, t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            return (affine(self.v, h).clamp(min=0), {}) if t == 1 else super().equations(t, x, h)

    torch.manual_seed(0)
    model = Odd().to(D)
    compare(model, torch.randn(1, 4, X, dtype=D), model.equations)
