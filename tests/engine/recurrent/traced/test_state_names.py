"""A state is called what its variable or field is called in the user's code, without the containers that it is in."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from watched import seen

X, H, T = 3, 4, 7


class Named(nn.Module):
    parts: tuple[str, ...] = ("h",)

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)

    def zero(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(self.hidden(x), 1)

    def hidden(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError


class InADict(Named):
    def hidden(self, x: Tensor) -> list[Tensor]:
        st, out = {"h": self.zero(x)}, []
        for row in x.unbind(1):
            st["h"] = torch.tanh(self.a(row) + self.b(st["h"]))
            out.append(st["h"])
        return out


class InADictOfTheModule(Named):
    def hidden(self, x: Tensor) -> list[Tensor]:
        self.memory, out = {"h": self.zero(x)}, []
        for row in x.unbind(1):
            self.memory["h"] = torch.tanh(self.a(row) + self.b(self.memory["h"]))
            out.append(self.memory["h"])
        return out


@dataclass
class State:
    h: Tensor
    c: Tensor


class InADataclass(Named):
    parts = ("c", "h")

    def hidden(self, x: Tensor) -> list[Tensor]:
        st, out = State(self.zero(x), self.zero(x)), []
        for row in x.unbind(1):
            st.c = 0.5 * st.c + torch.tanh(self.a(row) + self.b(st.h))
            st.h = torch.tanh(self.c(st.c))
            out.append(st.h)
        return out


class TwoContainers(Named):
    """Two fields of one name: with the names of what they are in."""

    parts = ("upper.h", "lower.h")

    def hidden(self, x: Tensor) -> list[Tensor]:
        upper, lower = SimpleNamespace(h=self.zero(x)), SimpleNamespace(h=self.zero(x))
        out = []
        for row in x.unbind(1):
            one, other = self.a(row) + self.b(upper.h) + 0.1 * lower.h, self.c(lower.h) + upper.h
            upper.h, lower.h = torch.tanh(one), torch.tanh(other)
            out.append(upper.h)
        return out


class Nested(Named):
    parts = ("encoder.h", "decoder.h")

    def hidden(self, x: Tensor) -> list[Tensor]:
        st, out = {"encoder": {"h": self.zero(x)}, "decoder": {"h": self.zero(x)}}, []
        for row in x.unbind(1):
            e, d = st["encoder"]["h"], st["decoder"]["h"]
            st = {
                "encoder": {"h": torch.tanh(self.a(row) + self.b(e) + 0.1 * d)},
                "decoder": {"h": torch.tanh(self.c(d) + e)},
            }
            out.append(st["encoder"]["h"])
        return out


class InATuple(Named):
    """Numbers alone are no names."""

    parts = ("pair.0", "pair.1")

    def hidden(self, x: Tensor) -> list[Tensor]:
        pair, out = (self.zero(x), self.zero(x)), []
        for row in x.unbind(1):
            pair = tuple(torch.tanh(self.a(row) + self.b(v) + 0.1 * sum(pair)) for v in pair)  # type: ignore[assignment]
            out.append(pair[0])
        return out


class LookedAtAfterwards(Named):
    """The last state is also what a variable of a later loop was set to last, which is shorter."""

    parts = ("memory",)

    def hidden(self, x: Tensor) -> list[Tensor]:
        memory, out = self.zero(x), []
        for t in range(T):
            memory = torch.tanh(self.a(x[:, t]) + self.b(memory))
            out.append(memory)
        assert all(one.isfinite().all() for one in out)
        for s in out:
            if not s.isfinite().all():
                raise AssertionError
        return out


class InAFunction(Named):
    """The variable that keeps the state has no statement of its own that makes it."""

    parts = ("memory",)

    def hidden(self, x: Tensor) -> list[Tensor]:
        out: list[Tensor] = []
        memory = self.zero(x)
        for t in range(T):
            memory = self.step(x[:, t], memory)
            out += [memory]
        for z in out:
            assert z.isfinite().all()
        return out

    def step(self, x: Tensor, before: Tensor) -> Tensor:
        made = self.a(x) + self.b(before)
        return torch.tanh(made)


ALL = [
    InADict, InADictOfTheModule, InADataclass, TwoContainers, Nested, InATuple, LookedAtAfterwards, InAFunction,
]  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_a_state_is_called_what_its_variable_is(kind: type[Named]) -> None:
    torch.manual_seed(0)
    (found,), _, _ = seen(kind(), torch.randn(1, T, X))
    assert sorted(found.cell.parts) == sorted(kind.parts)
