"""Loops over chunks of a sequence with a loop over steps inside: every step of every chunk is a step, and shown once.

The reference is one loop over all steps, unrolled by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from unrolled import State, Tape, compare_with_unrolled
from watched import seen

X, H, T = 3, 4, 11
D = torch.float64


class Rnn(nn.Module):
    """h' = tanh(A x + B h), by step and over a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(X, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.a(x[:, t]) + self.b(h))
            out.append(h)
        return torch.stack(out, 1), h


class InChunks(nn.Module):
    """`size`: steps of a chunk; `kept`: what the first step of a chunk reads of the state, `cut`: without a gradient."""

    size, kept, cut = 4, 1.0, False

    def __init__(self) -> None:
        super().__init__()
        self.rnn = Rnn()

    def begin(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([h.square().sum(-1) for h in self.hidden(x)], 1)

    def hidden(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def memory(self, t: int, p: Mapping[str, Tensor], state: State) -> State:
        """Of the unrolled loop: what the parts of the state are when a chunk begins."""
        return tuple(self.kept * one for one in state) if t and t % self.size == 0 else state

    def step(self, p: Mapping[str, Tensor], x: Tensor, state: State) -> State:
        rows = linear(x, p["rnn.a.weight"], p["rnn.a.bias"])
        return (torch.tanh(rows + linear(state[0], p["rnn.b.weight"], p["rnn.b.bias"])),)


class Called(InChunks):
    """A module that goes over the steps of a chunk."""

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for piece in x.split(self.size, 1):
            rows, h = self.rnn(piece, h)
            out += rows.unbind(1)
        return out


class CalledCut(InChunks):
    cut = True

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for piece in x.split(self.size, 1):
            rows, h = self.rnn(piece, h.detach())
            out.append(rows)
        return list(torch.cat(out, 1).unbind(1))


class Nested(InChunks):
    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for piece in x.split(self.size, 1):
            for t in range(piece.shape[1]):
                h = torch.tanh(self.rnn.a(piece[:, t]) + self.rnn.b(h))
                out.append(h)
        return out


class NestedCut(InChunks):
    cut = True

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for first in range(0, x.shape[1], self.size):
            h = h.detach()
            for t in range(first, min(first + self.size, x.shape[1])):
                h = torch.tanh(self.rnn.a(x[:, t]) + self.rnn.b(h))
                out.append(h)
        return out


class CutAtTheEnd(InChunks):
    cut = True

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for piece in x.split(self.size, 1):
            rows = self.rnn.a(piece).unbind(1)
            for row in rows:
                h = torch.tanh(row + self.rnn.b(h))
                out.append(h)
            h = h.detach()
        return out


class Projected(InChunks):
    """The inputs of a chunk are projected together, and its outputs are stacked."""

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for piece in x.split(self.size, 1):
            projected, rows = self.rnn.a(piece), []
            for row in projected.unbind(1):
                h = torch.tanh(row + self.rnn.b(h))
                rows.append(h)
            out.append(torch.stack(rows, 1))
        return list(torch.cat(out, 1).unbind(1))


class Scaled(InChunks):
    kept = 0.5

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for n, piece in enumerate(x.split(self.size, 1)):
            h = 0.5 * h if n else h
            for row in piece.unbind(1):
                h = torch.tanh(self.rnn.a(row) + self.rnn.b(h))
                out.append(h)
        return out


class Generated(InChunks):
    """Chunks come from a generator that keeps the state."""

    def chunks(self, x: Tensor) -> Iterator[Tensor]:
        h = self.begin(x)
        for piece in x.split(self.size, 1):
            rows, h = self.rnn(piece, h)
            yield rows

    def hidden(self, x: Tensor) -> list[Tensor]:
        return list(torch.cat(list(self.chunks(x)), 1).unbind(1))


class Remembering(InChunks):
    """Beside the state of the steps a memory that changes once a chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.m = nn.Linear(H, H)

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, m, out = self.begin(x), self.begin(x), []
        for piece in x.split(self.size, 1):
            for row in piece.unbind(1):
                h = torch.tanh(self.rnn.a(row) + self.rnn.b(h) + m)
                out.append(h)
            m = 0.5 * m + torch.tanh(self.m(h))
        return out

    def memory(self, t: int, p: Mapping[str, Tensor], state: State) -> State:
        h, m = state
        new = 0.5 * m + torch.tanh(linear(h, p["m.weight"], p["m.bias"]))
        return (h, new) if t and t % self.size == 0 else state

    def step(self, p: Mapping[str, Tensor], x: Tensor, state: State) -> State:
        h, m = state
        rows = linear(x, p["rnn.a.weight"], p["rnn.a.bias"]) + linear(h, p["rnn.b.weight"], p["rnn.b.bias"])
        return torch.tanh(rows + m), m


ALL = [Called, CalledCut, Nested, NestedCut, CutAtTheEnd, Projected, Scaled, Generated, Remembering]


SIZES = [(kind, size) for kind in ALL for size in (2, 4, 7) if size < 5 or kind not in (Projected, Scaled, Remembering)]
"""Two chunks are too few to be seen as chunks: what is done between them is then a part of the last step before."""


@pytest.mark.parametrize(("kind", "size"), SIZES)
def test_the_steps_of_all_chunks_are_one_recurrence(kind: type[InChunks], size: int) -> None:
    torch.manual_seed(1)
    model = kind().to(D)
    model.size = size

    def unrolled(tape: Tape, x: Tensor) -> list[Tensor]:
        state: State = (x.new_zeros(H),) * (2 if kind is Remembering else 1)
        losses = []
        for t, row in enumerate(x):
            if model.cut and t % size == 0:
                state = tuple(one.detach() for one in state)

            def step(p: Mapping[str, Tensor], before: State, t: int = t, row: Tensor = row) -> State:
                return model.step(p, row, model.memory(t, p, before))

            state = tape.step(step, state)
            losses.append(state[0].square().sum())
        return losses

    owner = "rnn" if kind in (Called, CalledCut, Generated) else "model"
    ahead = ("rnn.a.weight", "rnn.a.bias") if kind in (CutAtTheEnd, Projected) else ()
    compare_with_unrolled(model, unrolled, torch.randn(T, X, dtype=D), place=owner, ahead=ahead)


class SmallSteps(InChunks):
    """Three small steps an input, each with a weight of its own: a part of the step, though they are a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Parameter(torch.randn(3, H))

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for row in x.unbind(1):
            projected = self.rnn.a(row)
            for k in range(3):
                h = torch.tanh(projected + self.rnn.b(h) + self.each[k])
            out.append(h)
        return out

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(self.hidden(x), 1)


class Attending(SmallSteps):
    """A sum over all inputs within each step, which begins anew."""

    def hidden(self, x: Tensor) -> list[Tensor]:
        h, out = self.begin(x), []
        for row in x.unbind(1):
            own = self.rnn.a(row)
            total = torch.zeros_like(h)
            for other in x.unbind(1):
                total = torch.tanh(0.1 * total + self.rnn.a(other) * h)
            h = torch.tanh(own + self.rnn.b(h) + total)
            out.append(h)
        return out


@pytest.mark.parametrize("kind", [SmallSteps, Attending])
def test_a_loop_within_a_step_is_a_part_of_it(kind: type[InChunks]) -> None:
    found, _, _ = seen(kind().to(D), torch.randn(1, T, X, dtype=D))
    assert [one.steps for one in found][:1] == [T]
