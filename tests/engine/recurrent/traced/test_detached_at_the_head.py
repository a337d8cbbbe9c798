"""A state whose parts are detached one by one at the head of a step: the parts are no iterations of the loop.

The reference is the loop unrolled by hand, in which the state before every k-th step is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from unrolled import State, Tape, compare_with_unrolled

X, H, T = 3, 4, 20  # Python makes some calls from another instruction after the first few; 20 steps are beyond that


class Cell(nn.Module):
    """h' = tanh(A x + B h + c), c' = c / 2 + tanh(C h') / 2."""

    every = 1

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(self.a(x) + self.b(h) + c)
        return h, 0.5 * c + 0.5 * torch.tanh(self.c(h))

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.new_zeros(len(x), H), x.new_ones(len(x), H)

    def cut(self, t: int) -> bool:
        return t % self.every == 0

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([h.square().sum(-1) for h in self.hidden(x)], 1)

    def hidden(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError


class AsTuple(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        state, out = self.begin(x), []
        for t in range(x.shape[1]):
            if self.cut(t):
                state = tuple(v.detach() for v in state)  # type: ignore[assignment]
            state = self.step(x[:, t], *state)
            out.append(state[0])
        return out


class AsList(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        state, out = [*self.begin(x)], []
        for t, row in enumerate(x.unbind(1)):
            if self.cut(t):
                state = [v.detach() for v in state]
            state[:] = self.step(row, *state)
            out.append(state[0])
        return out


class AsDict(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        state, out = dict(zip("hc", self.begin(x), strict=True)), []
        for t, row in enumerate(x.unbind(1)):
            if self.cut(t):
                state = {name: v.detach() for name, v in state.items()}
            state["h"], state["c"] = self.step(row, state["h"], state["c"])
            out.append(state["h"])
        return out


@dataclass
class Memory:
    h: Tensor
    c: Tensor


class AsDataclass(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        memory, out = Memory(*self.begin(x)), []
        for t, row in enumerate(x.unbind(1)):
            if self.cut(t):
                memory = Memory(*(getattr(memory, field.name).detach() for field in fields(memory)))
            memory = Memory(*self.step(row, memory.h, memory.c))
            out.append(memory.h)
        return out


class Pair(NamedTuple):
    h: Tensor
    c: Tensor


def apart(state: Any) -> Any:
    """The function of the word language model: parts of parts too."""
    return state.detach() if isinstance(state, Tensor) else tuple(apart(one) for one in state)


class ByAFunction(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        state, out = Pair(*self.begin(x)), []
        for t, row in enumerate(x.unbind(1)):
            if self.cut(t):
                state = Pair(*apart(state))
            state = Pair(*self.step(row, *state))
            out.append(state.h)
        return out


class ByMap(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        (h, c), out, t = self.begin(x), [], 0
        while t < x.shape[1]:
            if self.cut(t):
                h, c = map(torch.detach, (h, c))
            h, c = self.step(x[:, t], h, c)
            out.append(h)
            t += 1
        return out


class ByALoop(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        state, out = self.begin(x), []
        for t in range(x.shape[1]):
            if self.cut(t):
                parts = []
                for part in state:
                    parts.append(part.detach())
                state = parts[0], parts[1]
            state = self.step(x[:, t], *state)
            out.append(state[0])
        return out


class AsGenerator(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        return list(self.goes_on(x))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([h.square().sum(-1) for h in self.goes_on(x)], 1)

    def goes_on(self, x: Tensor) -> Iterator[Tensor]:
        state = self.begin(x)
        for t, row in enumerate(x.unbind(1)):
            if self.cut(t):
                state = tuple(v.detach() for v in state)  # type: ignore[assignment]
            state = self.step(row, *state)
            yield state[0]


class ByReduce(Cell):
    def hidden(self, x: Tensor) -> list[Tensor]:
        out: list[Tensor] = []

        def step(state: tuple[Tensor, Tensor], row: Tensor) -> tuple[Tensor, Tensor]:
            if self.cut(len(out)):
                state = tuple(v.detach() for v in state)  # type: ignore[assignment]
            h, c = self.step(row, *state)
            out.append(h)
            return h, c

        reduce(step, x.unbind(1), self.begin(x))
        return out


ALL = [AsTuple, AsList, AsDict, AsDataclass, ByAFunction, ByMap, ByALoop, AsGenerator, ByReduce]


@pytest.mark.parametrize("every", [1, 6])
@pytest.mark.parametrize("kind", ALL)
def test_the_steps_are_those_of_the_loop(kind: type[Cell], every: int) -> None:
    torch.manual_seed(0)
    model = kind().double()
    model.every = every

    def unrolled(tape: Tape, x: Tensor) -> list[Tensor]:
        state: State = (x.new_zeros(H), x.new_ones(H))
        losses = []
        for t, row in enumerate(x):
            if t % every == 0:
                state = tuple(one.detach() for one in state)

            def step(p: Any, before: State, row: Tensor = row) -> State:
                h, c = before
                linear = torch.nn.functional.linear
                h = torch.tanh(linear(row, p["a.weight"], p["a.bias"]) + linear(h, p["b.weight"], p["b.bias"]) + c)
                return h, 0.5 * c + 0.5 * torch.tanh(linear(h, p["c.weight"], p["c.bias"]))

            state = tape.step(step, state)
            losses.append(state[0].square().sum())
        return losses

    compare_with_unrolled(model, unrolled, torch.randn(T, X, dtype=torch.float64))
