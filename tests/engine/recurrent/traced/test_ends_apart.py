"""A first or a last step on other lines than the loop is a step: every quantity against a plain loop over all steps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn
from unrolled import State, Tape, compare_with_unrolled
from watched import seen

D, IN, H, T = torch.float64, 3, 4, 7


class Cell(nn.Module):
    """The losses (b, t) of a gated recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(IN, 2 * H), nn.Linear(H, 2 * H)

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        g, a = (self.x(x) + self.h(h)).chunk(2, -1)
        return torch.sigmoid(g) * h + (1 - torch.sigmoid(g)) * torch.tanh(a)

    def zeros(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)


class Last(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h, losses = self.zeros(x), []
        for t in range(x.shape[1] - 1):
            h = self.advance(x[:, t], h)
            losses.append(h.square().sum(-1))
        h = self.advance(x[:, -1], h)
        losses.append(h.square().sum(-1))
        return torch.stack(losses, 1)


class First(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h = self.advance(x[:, 0], self.zeros(x))
        losses = [h.square().sum(-1)]
        for t in range(1, x.shape[1]):
            h = self.advance(x[:, t], h)
            losses.append(h.square().sum(-1))
        return torch.stack(losses, 1)


class Both(Cell):
    def forward(self, x: Tensor) -> Tensor:
        h = self.advance(x[:, 0], self.zeros(x))
        losses = [h.square().sum(-1)]
        for row in x[:, 1:-1].unbind(1):
            h = self.advance(row, h)
            losses.append(h.square().sum(-1))
        final = self.advance(x[:, -1], h)
        losses.append(final.square().sum(-1))
        return torch.stack(losses, 1)


class WrittenOut(Cell):
    """No function: the same operations on other lines."""

    def forward(self, x: Tensor) -> Tensor:
        h, losses = self.zeros(x), []
        for t in range(x.shape[1] - 1):
            g, a = (self.x(x[:, t]) + self.h(h)).chunk(2, -1)
            h = torch.sigmoid(g) * h + (1 - torch.sigmoid(g)) * torch.tanh(a)
            losses.append(h.square().sum(-1))
        g, a = (self.x(x[:, -1]) + self.h(h)).chunk(2, -1)
        h = torch.sigmoid(g) * h + (1 - torch.sigmoid(g)) * torch.tanh(a)
        losses.append(h.square().sum(-1))
        return torch.stack(losses, 1)


def unrolled(tape: Tape, x: Tensor) -> list[Tensor]:
    state: State = (torch.zeros(H, dtype=D),)
    losses = []
    for row in x:

        def step(own: Mapping[str, Tensor], given: State, row: Tensor = row) -> State:
            g, a = (own["x.weight"] @ row + own["x.bias"] + own["h.weight"] @ given[0] + own["h.bias"]).chunk(2)
            return (torch.sigmoid(g) * given[0] + (1 - torch.sigmoid(g)) * torch.tanh(a),)

        state = tape.step(step, state)
        losses.append(state[0].square().sum())
    return losses


@pytest.mark.parametrize("kind", [Last, First, Both, WrittenOut], ids=lambda kind: kind.__name__)
def test_every_quantity_of_every_step(kind: type[Cell]) -> None:
    torch.manual_seed(0)
    found = compare_with_unrolled(kind().to(D), unrolled, torch.randn(T, IN, dtype=D), place="model")
    assert found.domain == "step" and found.reads is not None and found.reads.low.tolist() == list(range(T))


class OutputsOnly(Cell):
    """The last step is the answer; it writes no output as the others do."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.zeros(x), []
        for t in range(x.shape[1] - 1):
            h = self.advance(x[:, t], h)
            out.append(h.cos() * 2)
        h = self.advance(x[:, -1], h)
        return torch.stack([*out, h], 1)


def test_a_last_step_may_lack_what_makes_no_state() -> None:
    torch.manual_seed(0)
    (found,), kept, _ = seen(OutputsOnly().to(D), torch.randn(2, T, IN, dtype=D))
    assert not kept.refusals() and found.steps == T and found.check is not None and found.check.passed


class OnceMore(Cell):
    """One more application of the same function, to what is no step of the input."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.zeros(x), []
        for t in range(x.shape[1]):
            h = self.advance(x[:, t], h)
            out.append(h)
        return torch.stack(out, 1) + self.advance(x.mean(1), h)[:, None]


class OtherWeights(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.other = Cell()

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.zeros(x), []
        for t in range(x.shape[1] - 1):
            h = self.advance(x[:, t], h)
            out.append(h)
        return torch.stack([*out, self.other.advance(x[:, -1], h)], 1)


class OtherState(Cell):
    """What is after the loop reads the state before the last one."""

    def forward(self, x: Tensor) -> Tensor:
        out = [self.zeros(x)]
        for t in range(x.shape[1] - 1):
            out.append(self.advance(x[:, t], out[-1]))
        return torch.stack([*out[1:], self.advance(x[:, -1], out[-2])], 1)


@pytest.mark.parametrize(("kind", "steps"), [(OnceMore, T), (OtherWeights, T - 1), (OtherState, T - 1)])
def test_what_is_no_further_step_is_not_taken_for_one(kind: type[Cell], steps: int) -> None:
    torch.manual_seed(0)
    (found,), kept, _ = seen(kind().to(D), torch.randn(2, T, IN, dtype=D))
    assert not kept.refusals() and found.steps == steps and found.check is not None and found.check.passed
