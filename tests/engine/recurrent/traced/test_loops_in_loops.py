"""One loop that runs several times: passes over two sequences, tied layers, words in sentences, decoding in each step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

from inspector.engine.probes.handwritten import MOST_RUNS

D = torch.float64
H, T, K = 4, 6, 5


class Twice(nn.Module):
    """Two cells; `inner` and `outer` are those that the loops run."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2 * H, H), nn.Linear(2 * H, H)

    def inner(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.a(torch.cat((x, h), -1)))

    def outer(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.b(torch.cat((x, h), -1)))

    def run(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.inner(row, h)
            out.append(h)
        return torch.stack(out, 1)


class Siamese(Twice):
    """The same loop over two sequences, with a new state."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(())
        for given in (x, x.flip(1)):
            h, out = x.new_zeros(len(x), H), []
            for t in range(T):
                h = self.inner(given[:, t], h)
                out.append(h)
            total = total + torch.stack(out, 1)
        return total


class Called(Twice):
    def forward(self, x: Tensor) -> Tensor:
        return self.run(x) + self.run(x.flip(1))


class Tied(Twice):
    """Layers that share their weights: a whole sequence goes from one to the next, and is no state."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            h, out = x.new_zeros(len(x), H), []
            for t in range(T):
                h = self.inner(x[:, t], h)
                out.append(h)
            x = torch.stack(out, 1)
        return x


class TiedCalls(Twice):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.run(x)
        return x


class Words(Twice):
    """A state of sentences, and one of words that begins anew in each."""

    def forward(self, x: Tensor) -> Tensor:
        s, out = x.new_zeros(len(x), H), []
        for t in range(T):
            h = x.new_zeros(len(x), H)
            for k in range(K):
                h = self.inner(x[:, t] * (k + 1), h)
            s = self.outer(h, s)
            out.append(s)
        return torch.stack(out, 1)


class Decoding(Twice):
    """At every step, some steps of decoding that nothing later depends on."""

    def decode(self, s: Tensor) -> Tensor:
        y, out = s, []
        for _ in range(K):
            y = self.inner(s, y)
            out.append(y)
        return torch.stack(out).sum(0)

    def forward(self, x: Tensor) -> Tensor:
        s, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            s = self.outer(row, s)
            out.append(self.decode(s))
        return torch.stack(out, 1)


class DecodingAlone(Decoding):
    """The steps of the input carry nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.decode(x[:, t]) for t in range(T)], 1)


class Solver(Twice):
    """Small steps within each step: they are a part of it."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(T):
            row = x[:, t]
            for _ in range(K):
                h = h + 0.2 * (self.inner(row, h) - h)
            out.append(h)
        return torch.stack(out, 1)


def wanted(model: Twice, x: Tensor) -> list[list[tuple[str, Tensor, Tensor]]]:
    """For each recurrence (which cell, input, state before) of every step, from the equations."""
    zero = x.new_zeros(len(x), H)
    rows: list[list[tuple[str, Tensor, Tensor]]] = []

    def follow(which: str, given: list[Tensor], h: Tensor) -> Tensor:
        rows.append([])
        for row in given:
            rows[-1].append((which, row, h))
            h = getattr(model, which)(row, h)
        return h

    def states(run: list[tuple[str, Tensor, Tensor]]) -> list[Tensor]:
        return [getattr(model, which)(row, h) for which, row, h in run]

    if isinstance(model, (Siamese, Called)):
        for given in (x, x.flip(1)):
            follow("inner", list(given.unbind(1)), zero)
    elif isinstance(model, (Tied, TiedCalls)):
        given = list(x.unbind(1))
        for _ in range(3):
            follow("inner", given, zero)
            given = states(rows[-1])
    elif isinstance(model, Words):
        ends = [follow("inner", [row * (k + 1) for k in range(K)], zero) for row in x.unbind(1)]
        follow("outer", ends, zero)
        rows.insert(0, rows.pop())
    elif isinstance(model, DecodingAlone):
        for row in x.unbind(1):
            follow("inner", [row] * K, row)
    else:
        follow("outer", list(x.unbind(1)), zero)
        for s in states(rows[0]):
            follow("inner", [s] * K, s)
    return rows


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize(
    "kind", [Siamese, Called, Tied, TiedCalls, Words, Decoding, DecodingAlone], ids=lambda kind: kind.__name__
)
def test_every_run_is_a_recurrence(kind: Any, b: int) -> None:
    torch.manual_seed(4)
    model, x = kind().to(D), torch.randn(b, T, H, dtype=D)
    found, kept, _ = seen(model, x)
    with torch.no_grad():
        expected = wanted(model, x)
    assert not kept.reasons() and [one.steps for one in found] == [len(run) for run in expected]
    for one, run in zip(found, expected, strict=True):
        jacobians = one.block(0, one.steps).jacobian()
        for t, (which, row, h) in enumerate(run):
            torch.testing.assert_close(one.states[t], h)
            for n in range(b):
                step = torch.autograd.functional.jacobian(
                    lambda s, n=n, row=row, which=which: getattr(model, which)(row[n], s), h[n]
                )
                torch.testing.assert_close(jacobians[t, n], step)


def test_small_steps_are_a_part_of_the_step() -> None:
    torch.manual_seed(5)
    model, x = Solver().to(D), torch.randn(2, T, H, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.steps == T

    def step(row: Tensor, h: Tensor) -> Tensor:
        for _ in range(K):
            h = h + 0.2 * (model.inner(row, h) - h)
        return h

    jacobians = found.block(0, T).jacobian()
    for t in range(T):
        expected = torch.autograd.functional.jacobian(lambda s, t=t: step(x[1, t], s), found.states[t, 1])
        torch.testing.assert_close(jacobians[t, 1], expected)


def test_of_very_many_runs_the_first_are_shown_and_the_rest_is_said() -> None:
    found, kept, _ = seen(DecodingAlone().to(D), torch.randn(1, T, H, dtype=D))
    assert len(found) == T and not kept.reasons()

    class Many(DecodingAlone):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([self.decode(x[:, t]) for t in range(x.shape[1])], 1)

    found, kept, _ = seen(Many().to(D), torch.randn(1, MOST_RUNS + 3, H, dtype=D))
    (reason,) = kept.reasons()
    assert len(found) == MOST_RUNS
    assert reason.startswith(f"The loop of {K} iterations in decode(), line ")
    assert reason.endswith(f" runs {MOST_RUNS + 3} times; its first {MOST_RUNS} runs are shown.")
