"""States whose parts have several types: each is shown as it was computed, and steps are run again in those types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

STEPS, UNITS = 8, 3
OPTIONS = RunOptions(only=("states", "jacobian/frobenius_norm", "gradients"))
State = tuple[Tensor, Tensor]


class Pair(nn.Module):
    """p in float32 and q in float64, each of which reads the other."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(2 + UNITS, UNITS), nn.Linear(2 + UNITS, UNITS).double()

    def step(self, x: Tensor, p: Tensor, q: Tensor) -> State:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        p = torch.zeros(len(x), UNITS)
        q, found = p.double(), []
        for t in range(x.shape[1]):
            p, q = self.step(x[:, t], p, q)
            found.append(p + q.float())
        return torch.stack(found, 1)


class AtOnce(Pair):
    def step(self, x: Tensor, p: Tensor, q: Tensor) -> State:
        return torch.tanh(self.a(torch.cat((x, q.to(x)), 1))), torch.tanh(
            self.b(torch.cat((x.double(), p.double()), 1))
        )


class InTurn(Pair):
    def step(self, x: Tensor, p: Tensor, q: Tensor) -> State:
        p = torch.tanh(self.a(torch.cat((x, p + 0.5 * q.to(x)), 1)))
        return p, torch.tanh(self.b(torch.cat((x.double(), q - p.double()), 1)))


class Lowered(nn.Module):
    """An LSTM under autocast: h is bfloat16 and c float32."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.map, self.seen = nn.Linear(2 + UNITS, 4 * UNITS), list[State]()

    def forward(self, x: Tensor) -> Tensor:
        c = torch.zeros(len(x), UNITS)
        h, found = c.bfloat16(), []
        with torch.autocast("cpu", torch.bfloat16):
            for t in range(x.shape[1]):
                i, f, g, o = self.map(torch.cat((x[:, t], h.float()), 1)).chunk(4, 1)
                c = torch.sigmoid(f).float() * c + (torch.sigmoid(i) * torch.tanh(g)).float()
                h = torch.sigmoid(o) * torch.tanh(c).bfloat16()
                found.append(h)
                self.seen.append((h.detach(), c.detach()))
        return torch.stack(found, 1).float()


def run(model: nn.Module) -> tuple[Tensor, Kept]:
    torch.manual_seed(1)
    x, sink = torch.randn(1, STEPS, 2), Kept()
    subject = Subject(model=model, loss=lambda y, batch: y.square().sum(-1))
    perform(subject, Batch(x, torch.tensor([STEPS])), sink, OPTIONS)
    return x, sink


@pytest.mark.parametrize("kind", [AtOnce, InTurn])
def test_a_step_of_two_types_is_run_again(kind: Callable[[], Pair]) -> None:
    x, sink = run(kind())
    wide = kind().double()
    state = torch.zeros(1, 2 * UNITS, dtype=torch.float64)
    for t, now in enumerate(x.double().unbind(1)):

        def step(before: Tensor, now: Tensor = now) -> Tensor:
            return torch.cat(wide.step(now, *before.split(UNITS, 1)), 1)

        norm = float(jacobian(step, state).norm())
        state = step(state).detach()
        for name, own in zip("pq", state[0].split(UNITS), strict=True):
            np.testing.assert_allclose(sink.array(f"model:{name}")[t].ravel(), own.numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(sink.array("model:jacobian/frobenius_norm")[t], norm, rtol=1e-4)


def test_each_part_is_shown_in_its_own_precision() -> None:
    model = Lowered()
    _, sink = run(model)
    for name, n in (("h", 0), ("c", 1)):
        recorded = torch.cat([state[n].float() for state in model.seen[-STEPS:]]).numpy()
        np.testing.assert_array_equal(sink.array(f"model:{name}").reshape(STEPS, UNITS), recorded)
