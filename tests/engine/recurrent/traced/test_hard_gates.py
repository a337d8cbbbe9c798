"""Gates that are computed together and taken apart, and gates that a function with bounds makes; from the equations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 7
Both = Callable[[Tensor], tuple[Tensor, ...]]


def chunked(z: Tensor) -> tuple[Tensor, ...]:
    g = torch.sigmoid_(z)
    i, f = g.chunk(2, -1)
    return i, f


def in_place(z: Tensor) -> tuple[Tensor, ...]:
    z.sigmoid_()
    i, f = z.split(H, -1)
    return i, f


def indexed(z: Tensor) -> tuple[Tensor, ...]:
    g = torch.sigmoid(z)
    i = g[:, :H]
    f = g[:, H:]
    return i, f


def not_named(z: Tensor) -> tuple[Tensor, ...]:
    g = torch.sigmoid(z)
    return g[:, :H], g[:, H:]


def held_together(z: Tensor) -> tuple[Tensor, ...]:
    both = torch.sigmoid(z).chunk(2, -1)
    return both[0], both[1]


def viewed(z: Tensor) -> tuple[Tensor, ...]:
    g = torch.sigmoid(z).view(-1, 2, H)
    i, f = g.unbind(1)
    return i, f


def unflattened(z: Tensor) -> tuple[Tensor, ...]:
    i, f = torch.sigmoid(z).unflatten(-1, (2, H)).unbind(-2)
    return i, f


class Together(nn.Module):
    def __init__(self, both: Both) -> None:
        super().__init__()
        self.both, self.l, self.n = both, nn.Linear(IN + H, 2 * H), nn.Linear(IN + H, H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            u = torch.cat((row, h), -1)
            i, f = self.both(self.l(u))
            n = torch.tanh(self.n(u))
            h = f * h + i * n
            out.append(h)
        return torch.stack(out, 1)

    def gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, found = x.new_zeros(H), []
        for row in x:
            u = torch.cat((row, h))
            g = 1 / (1 + torch.exp(-(self.l.weight @ u + self.l.bias)))
            h = g[H:] * h + g[:H] * torch.tanh(self.n.weight @ u + self.n.bias)
            found.append(g.detach())
        return torch.stack(found)[:, :H], torch.stack(found)[:, H:]


def opened(model: nn.Module, x: Tensor) -> Kept:
    sink = Kept()
    perform(Subject(model), Batch(x, torch.full((len(x),), T), ()), sink, RunOptions(only=("states", "gates")))
    return sink


@pytest.mark.parametrize("both", [chunked, in_place, indexed, not_named, held_together, viewed, unflattened])
def test_gates_that_are_computed_together_are_shown_apart(both: Both) -> None:
    torch.manual_seed(1)
    model, x = Together(both).to(D), torch.randn(2, T, IN, dtype=D)
    sink = opened(model, x)
    names = sorted(name for name in sink.names() if ":gate/" in name)
    own = {not_named: ["g.0", "g.1"], held_together: ["z.0", "z.1"]}.get(both, ["i", "f"])
    assert names == sorted(f"model:gate/{name}" for name in own)
    for name, values in zip(own, model.gates(x[0]), strict=True):
        np.testing.assert_allclose(sink.array(f"model:gate/{name}"), values, rtol=1e-12)


HARD: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], str]] = {
    "clamp": (lambda z: torch.clamp((z + 1) / 2, 0, 1), lambda z: (z + 1) / 2, "clamp"),
    "clamp by name": (lambda z: torch.clamp(0.2 * z + 0.5, min=0.0, max=1.0), lambda z: 0.2 * z + 0.5, "clamp"),
    "clamp in place": (lambda z: (0.2 * z + 0.5).clamp_(0, 1), lambda z: 0.2 * z + 0.5, "clamp"),
    "hardtanh": (lambda z: F.hardtanh(0.2 * z + 0.5, 0.0, 1.0), lambda z: 0.2 * z + 0.5, "hardtanh"),
    "hardtanh moved": (lambda z: (F.hardtanh(z) + 1) / 2, lambda z: (z + 1) / 2, "hardtanh"),
    "relu6": (lambda z: F.relu6(z + 3) / 6, lambda z: (z + 3) / 6, "relu6"),
    "relu6 by a product": (lambda z: 0.5 * F.relu6(z + 3) / 3, lambda z: (z + 3) / 6, "relu6"),
}


class Hard(nn.Module):
    def __init__(self, gate: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.gate, self.l, self.n = gate, nn.Linear(IN + H, H), nn.Linear(IN + H, H)
        nn.init.normal_(self.l.weight, std=3.0)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            u = torch.cat((row, h), -1)
            keep = self.gate(self.l(u))
            h = keep * h + (1 - keep) * torch.tanh(self.n(u))
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("style", HARD)
def test_a_bounded_function_that_multiplies_a_state_is_a_gate(style: str) -> None:
    gate, plain, function = HARD[style]
    torch.manual_seed(2)
    model, x = Hard(gate).to(D), torch.randn(1, T, IN, dtype=D)
    sink = opened(model, x)
    gates = [name for name in sink.names() if ":gate/" in name]
    assert len(gates) == 1 and gates[0].startswith("model:gate/")
    h, expected = torch.zeros(H, dtype=D), []
    for row in x[0]:
        u = torch.cat((row, h))
        keep = torch.minimum(
            torch.maximum(plain(model.l.weight @ u + model.l.bias), torch.tensor(0.0)), torch.tensor(1.0)
        )
        h = keep * h + (1 - keep) * torch.tanh(model.n.weight @ u + model.n.bias)
        expected.append(keep.detach())
    values = torch.stack(expected)
    assert bool((values == 0).any()) and bool((values == 1).any())
    np.testing.assert_allclose(sink.array(gates[0]), values, rtol=1e-9, atol=1e-12)
    channel = sink.channel(gates[0])
    assert f"{function} keeps it between 0 and 1" in channel.formula and channel.limits == (0.0, 1.0)


def test_a_clamp_that_is_no_gate() -> None:
    class Clamped(Hard):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), H), []
            for row in x.unbind(1):
                u = torch.cat((row, h), -1)
                wide = torch.clamp(self.l(u), 0, 2)
                added = torch.clamp(self.n(u), 0, 1)
                h = (0.5 * h + wide * 0.1 * h + added).clamp(0, 1)
                out.append(h)
            return torch.stack(out, 1)

    torch.manual_seed(3)
    sink = opened(Clamped(torch.sigmoid).to(D), torch.randn(1, T, IN, dtype=D))
    assert not any(":gate/" in name for name in sink.names()) and sink.array("model:h").shape == (T, H)
