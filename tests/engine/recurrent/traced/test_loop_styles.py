"""One GRU and one LSTM, written in the many ways in which people hold states and go round: all are the same cell."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from equations import affine, compare, gru_step, lstm_step, sigma, tanh
from torch import Tensor, nn
from watched import seen

D = torch.float64
X, H, T = 3, 4, 9


def head(state: Tensor) -> Tensor:
    return state[:H]


class Gru(nn.Module):
    """The layers and the step; `forward` says how it goes round."""

    backwards = False

    def __init__(self) -> None:
        super().__init__()
        self.r, self.z, self.n = (nn.Linear(X + H, H) for _ in range(3))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        r = torch.sigmoid(self.r(torch.cat((x, h), -1)))
        z = torch.sigmoid(self.z(torch.cat((x, h), -1)))
        n = torch.tanh(self.n(torch.cat((x, r * h), -1)))
        return z * h + (1 - z) * n

    def zero(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)


class Closure(Gru):
    def forward(self, x: Tensor) -> Tensor:
        h = self.zero(x)

        def advance(row: Tensor) -> Tensor:
            nonlocal h
            h = self.step(row, h)
            return h

        return torch.stack([advance(row) for row in x.unbind(1)], 1)


class Reduced(Gru):
    def longer(self, states: list[Tensor], row: Tensor) -> list[Tensor]:
        return [*states, self.step(row, states[-1])]

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(functools.reduce(self.longer, x.unbind(1), [self.zero(x)])[1:], 1)


class Mapped(Gru):
    def forward(self, x: Tensor) -> Tensor:
        memory = SimpleNamespace(h=self.zero(x))

        def advance(row: Tensor) -> Tensor:
            memory.h = self.step(row, memory.h)
            return memory.h

        return torch.stack(list(map(advance, x.unbind(1))), 1)


class Sent(Gru):
    """A coroutine that is sent its inputs."""

    def walk(self, h: Tensor) -> Generator[Tensor, Tensor, None]:
        row = yield h
        while True:
            h = self.step(row, h)
            row = yield h

    def forward(self, x: Tensor) -> Tensor:
        walk = self.walk(self.zero(x))
        next(walk)
        return torch.stack([walk.send(row) for row in x.unbind(1)], 1)


class Drained(Gru):
    """`while`, an iterator and `next`; `continue` and `break` in between."""

    def forward(self, x: Tensor) -> Tensor:
        h, out, rows = self.zero(x), [], iter(x.unbind(1))
        while True:
            row = next(rows, None)
            if row is None:
                break
            if len(out) == T:
                continue
            h = self.step(row, h)
            out.append(h)
        return torch.stack(out, 1)


class Backwards(Gru):
    backwards = True

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.zero(x), [x.new_zeros(0)] * x.shape[1]
        for t in reversed(range(x.shape[1])):
            h = out[t] = self.step(x[:, t], h)
        return torch.stack(out, 1)


class Detached(Gru):
    """A part of the step, all of it, and the new state are detached at several steps in several ways."""

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        r = torch.sigmoid(self.r(torch.cat((x, h.detach()), -1)))
        z = torch.sigmoid(self.z(torch.cat((x, h), -1))).detach()
        n = torch.tanh(self.n(torch.cat((x, (r * h).detach()), -1)))
        return z * h.data + (1 - z) * n

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.zero(x), []
        for t, row in enumerate(x.unbind(1)):
            if t % 4 == 2:
                h = h.detach().requires_grad_()
            h = self.step(row, h)
            out.append(h)
        return torch.stack(out, 1)


GRUS: dict[str, type[Gru]] = {kind.__name__: kind for kind in Gru.__subclasses__()}


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("name", sorted(GRUS))
def test_a_gru_is_the_same_however_it_goes_round(name: str, b: int) -> None:
    torch.manual_seed(0)
    model = GRUS[name]().to(D)
    layers = (model.r, model.z, model.n)
    compare(
        model, torch.randn(b, T, X, dtype=D), lambda _, x, h: gru_step(layers, x, h), backwards=model.backwards,
        shown=None if name == "Detached" else head,
    )  # fmt: skip


@dataclass
class Both:
    h: Tensor
    c: Tensor


class Pair(NamedTuple):
    h: Tensor
    c: Tensor


class Lstm(nn.Module):
    """One linear map; `parts` are the names of the state's parts as they are shown."""

    parts = ("h", "c")

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(X + H, 4 * H)

    def zero(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list(self.states(x)), 1)

    def states(self, x: Tensor) -> Any:
        raise NotImplementedError


class Dataclass(Lstm):
    def states(self, x: Tensor) -> Any:
        state, t, out = Both(self.zero(x), self.zero(x)), 0, []
        while t < x.shape[1]:
            i, f, g, o = torch.chunk(self.map(torch.cat([x[:, t], state.h], dim=1)), 4, dim=1)
            i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
            c = f * state.c + i * g
            state = replace(state, h=o * torch.tanh(c), c=c)
            out.append(state.h)
            t += 1
        return out


class NamedTuples(Lstm):
    def states(self, x: Tensor) -> Any:
        state, out = Pair(self.zero(x), self.zero(x)), []
        for row in x.unbind(1):
            i, f, g, o = self.map(torch.cat((row, state.h), -1)).split(H, -1)
            i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
            state = state._replace(c=f * state.c + i * g)
            state = state._replace(h=o * state.c.tanh())
            out.append(state.h)
        return out


class Attributes(Lstm):
    """The state is the module's own, and both parts begin with one tensor."""

    def advance(self, row: Tensor) -> Tensor:
        i, f, g, o = torch.tensor_split(self.map(torch.cat((row, self.h), -1)), 4, dim=-1)
        i, f, g, o = torch.special.expit(i), torch.special.expit(f), torch.tanh(g), torch.special.expit(o)
        self.c = f * self.c + i * g
        self.h = o * torch.tanh(self.c)
        return self.h

    def states(self, x: Tensor) -> Any:
        self.h = self.c = self.zero(x)
        return [self.advance(row) for row, _ in zip(x.unbind(1), range(1000), strict=False)]


class InAList(Lstm):
    """tanh(c) is no gate, wherever c is kept."""

    parts = ("state.0", "state.1")

    def states(self, x: Tensor) -> Any:
        state, out = [self.zero(x)] * 2, []
        for row in x.unbind(1):
            i, f, g, o = self.map(torch.cat((row, state[0]), -1)).chunk(4, -1)
            i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
            state[1] = f * state[1] + i * g
            state[0] = o * torch.tanh(state[1])
            out.append(state[0])
        return out


class InOneTensor(Lstm):
    """h and c side by side: tanh(c) is no gate there either."""

    parts = ("state",)

    def states(self, x: Tensor) -> Any:
        state, out = x.new_zeros(len(x), 2 * H), []
        for row in x.unbind(1):
            h, c = state.chunk(2, -1)
            i, f, g, o = self.map(torch.cat((row, h), -1)).chunk(4, -1)
            i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
            c = f * c + i * g
            state = torch.cat((o * torch.tanh(c), c), -1)
            out.append(state[:, :H])
        return out


class ByIndex(Lstm):
    """Gates cut by index, one of them squashed in place, the cell state added to in place."""

    def states(self, x: Tensor) -> Any:
        h = c = self.zero(x)
        out = []
        for row in x.unbind(1):
            a = self.map(torch.cat((row, h), -1)).unflatten(-1, (4, H))
            g = a[:, 2].clone().tanh_()
            i, f, o = torch.sigmoid(a[:, [0, 1, 3]]).unbind(1)
            c = (f * c).add_(i * g)
            h = o.mul(torch.tanh(c))
            out.append(h)
        return out


class Buffers(Lstm):
    """Two preallocated tensors."""

    parts = ("hs", "c")

    def states(self, x: Tensor) -> Any:
        hs, cs = (x.new_zeros(x.shape[1] + 1, len(x), H) for _ in range(2))
        for t in range(x.shape[1]):
            i, f, g, o = self.map(torch.cat((x[:, t], hs[t].clone()), -1)).chunk(4, -1)
            i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
            c = f * cs[t].clone() + i * g
            cs[t + 1], hs[t + 1] = c, o * torch.tanh(c)
        return hs[1:]


LSTMS: dict[str, type[Lstm]] = {kind.__name__: kind for kind in Lstm.__subclasses__()}


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("name", sorted(LSTMS))
def test_an_lstm_is_the_same_wherever_its_states_are(name: str, b: int) -> None:
    torch.manual_seed(1)
    model = LSTMS[name]().to(D)
    compare(
        model, torch.randn(b, T, X, dtype=D), lambda _, x, state: lstm_step(model.map, x, state), parts=model.parts,
        shown=head,
    )  # fmt: skip


class Peephole(nn.Module):
    """Gates see the cell state through diagonal weights (Gers & Schmidhuber 2000); the map is an einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.p = nn.Linear(X + H, 4 * H), nn.Parameter(torch.randn(3, H))

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), H)
        out = []
        for row in torch.unbind(x, dim=1):
            a = torch.einsum("bi,ji->bj", torch.cat((row, h), -1), self.map.weight) + self.map.bias
            ai, af, ag, ao = a.split(H, -1)
            i = torch.sigmoid(ai + self.p[0] * c)
            f = torch.sigmoid(af + self.p[1] * c)
            g = torch.tanh(ag)
            c = f * c + i * g
            o = torch.sigmoid(ao + self.p[2] * c)
            h = o * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)

    def equations(self, _: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        h, c = state.chunk(2)
        ai, af, ag, ao = affine(self.map, x, h).chunk(4)
        i, f, g = sigma(ai + self.p[0] * c), sigma(af + self.p[1] * c), tanh(ag)
        c = f * c + i * g
        o = sigma(ao + self.p[2] * c)
        return torch.cat((o * tanh(c), c)), {"gate/i": i, "gate/f": f, "g": g, "gate/o": o}


class Normed(nn.Module):
    """Layer norm inside, a rectifier as candidate, `lerp` as the update."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.norm = nn.Linear(X + H, 2 * H), nn.LayerNorm(2 * H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            a = self.norm(self.map(torch.cat((row, h), -1)))
            z = torch.sigmoid(a[:, :H])
            n = torch.relu(a[:, H:])
            h = torch.lerp(h, n, z)
            out.append(h)
        return torch.stack(out, 1)

    def equations(self, _: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        a = affine(self.map, x, h)
        a = (a - a.mean()) / ((a - a.mean()).square().mean() + self.norm.eps).sqrt()
        a = a * self.norm.weight + self.norm.bias
        z, n = sigma(a[:H]), a[H:].clamp(min=0)
        return (1 - z) * h + z * n, {"gate/z": z, "activation/n": n}


class Ticking(nn.Module):
    """Units of different periods, written into a copy of the state by index (Koutník et al. 2014)."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(X + H, H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t, row in enumerate(x.unbind(1)):
            n = torch.tanh(self.map(torch.cat((row, h), -1)))
            active = [k for k in range(H) if t % (k + 1) == 0]
            h = h.clone()
            h[:, active] = n[:, active]
            out.append(h)
        return torch.stack(out, 1)

    def equations(self, t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        n = tanh(affine(self.map, x, h))
        return torch.where(torch.tensor([t % (k + 1) == 0 for k in range(H)]), n, h), {"n": n}


class FastWeights(nn.Module):
    """A matrix as memory (Ba et al. 2016), of which the state reads."""

    parts = ("h", "fast")

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(X, H)

    def forward(self, x: Tensor) -> Tensor:
        fast, h, out = x.new_zeros(len(x), H, H), x.new_ones(len(x), H), []
        for row in x.unbind(1):
            fast = torch.baddbmm(fast, h.unsqueeze(2), h.unsqueeze(1), beta=0.9, alpha=0.5)
            h = torch.tanh(self.w(row) + torch.bmm(fast, h.unsqueeze(-1)).squeeze(-1))
            out.append(h)
        return torch.stack(out, 1)

    def start(self) -> Tensor:
        return torch.cat((torch.ones(H, dtype=D), torch.zeros(H * H, dtype=D)))

    def equations(self, _: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        h, fast = state[:H], state[H:].view(H, H)
        fast = 0.9 * fast + 0.5 * torch.outer(h, h)
        h = tanh(affine(self.w, x) + fast @ h)
        return torch.cat((h, fast.reshape(-1))), {}


class Exchanged(nn.Module):
    """Both are read before either is made; neither begins with zeros."""

    parts = ("b", "a")

    def __init__(self) -> None:
        super().__init__()
        self.u, self.v = nn.Linear(X + H, H), nn.Linear(H, H)

    def forward(self, x: Tensor) -> Tensor:
        a, b, out = x.new_full((len(x), H), 0.3), x.new_ones(len(x), H), []
        for row in x.unbind(1):
            a, b = torch.tanh(self.u(torch.cat((row, b), -1))), torch.tanh(self.v(a))
            out.append(a)
        return torch.stack(out, 1)

    def start(self) -> Tensor:
        return torch.cat((torch.ones(H, dtype=D), torch.full((H,), 0.3, dtype=D)))

    def equations(self, _: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        b, a = state.chunk(2)
        return torch.cat((tanh(affine(self.v, a)), tanh(affine(self.u, x, b)))), {}


@pytest.mark.parametrize("kind", [Peephole, Normed, Ticking, FastWeights, Exchanged])
def test_cells_of_other_equations(kind: Any) -> None:
    torch.manual_seed(2)
    model = kind().to(D)
    parts = getattr(model, "parts", ("h", "c") if kind is Peephole else ("h",))
    start = model.start() if hasattr(model, "start") else None
    compare(model, torch.randn(2, T, X, dtype=D), model.equations, parts=parts, start=start)


def test_states_in_a_queue_are_lags_from_the_first_step_that_has_them() -> None:
    class Queue(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u, self.v = nn.Linear(X + H, H), nn.Linear(H, H)

        def forward(self, x: Tensor) -> Tensor:
            past = deque([x.new_zeros(len(x), H) for _ in range(3)], maxlen=3)
            out = []
            for row in x.unbind(1):
                past.append(torch.tanh(self.u(torch.cat((row, past[-1]), -1)) + self.v(past[0])))
                out.append(past[-1])
            return torch.stack(out, 1)

    torch.manual_seed(3)
    model, x = Queue().to(D), torch.randn(1, T, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and list(found.cell.parts) == ["h", "h[t-1]", "h[t-2]"]

    def step(t: int, state: Tensor) -> Tensor:
        h, one, two = state.chunk(3)
        return torch.cat((tanh(affine(model.u, x[0, t], h) + affine(model.v, two)), h, one))

    jacobians = found.block(0, T).jacobian()
    for t in range(2, T):
        before = found.states[t, 0]
        torch.testing.assert_close(found.states[t + 1, 0], step(t, before).detach())
        expected = torch.autograd.functional.jacobian(lambda s, t=t: step(t, s), before.clone())
        torch.testing.assert_close(jacobians[t, 0], expected)


def test_a_list_that_goes_on_changing_is_what_it_was_at_the_call() -> None:
    """Both layers' states side by side are given to each of them, from one list that is changed at every step."""

    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u, self.v = nn.Linear(X + 2 * H, H), nn.Linear(2 * H, H)

        def forward(self, x: Tensor) -> Tensor:
            states, out = [x.new_zeros(len(x), H), x.new_ones(len(x), H)], []
            for row in x.unbind(1):
                states[0] = torch.tanh(self.u(torch.cat((row, torch.cat(states, -1)), -1)))
                states[1] = torch.tanh(self.v(torch.cat(states, -1)))
                out.append(states[1])
            return torch.stack(out, 1)

    torch.manual_seed(4)
    model = Joined().to(D)

    def equations(_: int, x: Tensor, state: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        first = tanh(affine(model.u, x, state))
        return torch.cat((first, tanh(affine(model.v, first, state[H:])))), {}

    start = torch.cat((torch.zeros(H, dtype=D), torch.ones(H, dtype=D)))
    compare(
        model, torch.randn(2, T, X, dtype=D), equations, parts=("states.0", "states.1"), start=start,
        shown=lambda state: state[H:],
    )  # fmt: skip


def test_attention_over_all_states_so_far() -> None:
    """The list of states grows; every step's own derivative with respect to each of the states it looks at."""

    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.u, self.v = nn.Linear(X + H, H), nn.Linear(H, H)

        def step(self, x: Tensor, states: list[Tensor]) -> Tensor:
            past = torch.stack(states, -2)
            weights = torch.softmax((past @ states[-1][..., None])[..., 0], -1)
            return torch.tanh(self.u(torch.cat((x, states[-1]), -1)) + self.v((weights[..., None] * past).sum(-2)))

        def forward(self, x: Tensor) -> Tensor:
            states = [x.new_full((len(x), H), 0.2)]
            for row in x.unbind(1):
                states.append(self.step(row, states))
            return torch.stack(states[1:], 1)

    torch.manual_seed(5)
    model, x = Looking().to(D), torch.randn(1, T, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.check is not None and found.check.passed
    assert list(found.cell.parts) == ["h", *(f"h[t-{lag}]" for lag in range(1, T))]
    states = [found.states[t, 0, :H] for t in range(T + 1)]
    jacobians = found.block(0, T).jacobian()[:, 0, :H]
    for t in range(T):
        exact = torch.autograd.functional.jacobian(
            lambda *older, t=t: model.step(x[0, t], list(older)), tuple(states[: t + 1])
        )
        for lag, matrix in enumerate(reversed(exact)):
            torch.testing.assert_close(jacobians[t, :, lag * H : (lag + 1) * H], matrix)
