"""Steps in which several of torch's cells and fused modules take turns on one state, or feed each other: one recurrence
of the whole step, not one for each cell with what the others make of the state held fixed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

D = torch.float64
N = 4
QUANTITIES = ("states", "gates")


@pytest.fixture(autouse=True)
def nothing_is_written_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of cells are written while a slow model runs, before it is known of what they are a part; that is said."""
    monkeypatch.setattr("inspector.engine.probes.cells.LIVE_SECONDS", 1e9)


class Several(nn.Module):
    """`advance`: from a state (b, S), its parts side by side, to the next; `parts` of them."""

    parts = 1
    length = 1
    """Rows of the input that one step reads."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.GRUCell(3, N), nn.GRUCell(N, N)

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        state = tuple(x.new_zeros(len(x), N) for _ in range(self.parts))
        out = []
        for t, rows in enumerate(x.split(self.length, 1)):
            state = self.advance(rows, t, state)
            whole = torch.cat(state, -1)
            out += [whole, *[torch.zeros_like(whole)] * (self.length - 1)]
        return torch.stack(out, 1)


class DeepTransition(Several):
    """The first cell begins with the state, the second takes the first one's as its input."""

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (s,) = state
        return (self.b(self.a(rows[:, 0], s), s),)


class Transition(Several):
    """The second cell goes on from the first one's state, without an input."""

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (s,) = state
        return (self.b(torch.zeros_like(s), self.a(rows[:, 0], s)),)


class ByTurns(Several):
    def __init__(self) -> None:
        super().__init__()
        self.b = nn.GRUCell(3, N)

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return ((self.a if t % 2 else self.b)(rows[:, 0], *state),)


class BothInEveryStep(ByTurns):
    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (self.b(rows[:, 0], self.a(rows[:, 0], *state)),)


class Mutual(Several):
    """Each cell's input is the other one's state."""

    parts = 2

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.GRUCell(N + 3, N)

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        s, u = state
        s = self.a(torch.cat((rows[:, 0], u), -1), s)
        return s, self.b(s, u)


class SharedMemory(Several):
    """Two LSTM cells with states of their own and one memory."""

    parts = 3

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.LSTMCell(3, N), nn.LSTMCell(N, N)  # type: ignore[assignment]

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        first, second, c = state
        first, c = self.a(rows[:, 0], (first, c))
        second, c = self.b(first, (second, c))
        return first, second, c


class OwnState(Several):
    """One cell, whose input is its own state."""

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (self.b(*state, *state),)


class FusedInside(Several):
    """A fused module begins with the state and reads one row of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.GRU(3, N, batch_first=True)  # type: ignore[assignment]

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (s,) = state
        _, h = self.a(rows, s[None])
        return (self.b(h[0], s),)


class WordsInside(FusedInside):
    """The same over three rows in every step."""

    length = 3


class LayersInside(Several):
    """A fused LSTM of two layers and two directions over three rows."""

    length = 3

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.LSTM(3, 2, 2, bidirectional=True)  # type: ignore[assignment]

    def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (s,) = state
        first = torch.stack(s.chunk(2, -1) * 2)
        y, _ = self.a(rows.transpose(0, 1), (first, first))
        return (self.b(y[-1], s),)


KINDS = [
    DeepTransition, Transition, ByTurns, BothInEveryStep, Mutual, SharedMemory, OwnState, FusedInside, WordsInside,
    LayersInside,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_whole_step_is_one_recurrence(kind: Any) -> None:
    """States, Jacobians and loss gradients against autograd through the user's own step, and nothing else is shown."""
    torch.manual_seed(0)
    model = kind().to(D)
    steps = 9
    x = torch.randn(2, steps * kind.length, 3, dtype=D)
    (found,), kept, _ = seen(model, x, quantities=QUANTITIES)
    assert not kept.reasons()
    assert found.place == "model" and found.check is not None and found.check.passed
    assert found.steps == steps
    now = [torch.zeros(2, N, dtype=D) for _ in range(kind.parts)]
    moves, loss = [], torch.zeros((), dtype=D)
    befores, expected = [], []
    for t, rows in enumerate(x.split(kind.length, 1)):

        def step(flat: Tensor, rows: Tensor = rows, t: int = t) -> Tensor:
            return torch.cat(model.advance(rows[1:], t, tuple(flat[None].split(N, -1))), -1)[0]

        befores.append(torch.cat(now, -1)[1].detach())
        expected.append(torch.autograd.functional.jacobian(step, befores[-1]))
        moves.append([torch.zeros(2, N, dtype=D, requires_grad=True) for _ in now])
        now = [one + move for one, move in zip(model.advance(rows, t, tuple(now)), moves[-1], strict=True)]
        loss = loss + sum((one.square().sum() for one in now), torch.zeros((), dtype=D))
    order = in_their_order(torch.cat(now, -1)[1].detach(), found.states[-1, 1])
    torch.testing.assert_close(found.states[:-1, 1], torch.stack(befores)[:, order])
    torch.testing.assert_close(found.block(0, steps).jacobian()[:, 1], torch.stack(expected)[:, order][:, :, order])
    gradients = torch.autograd.grad(loss, [one for row in moves for one in row])
    wanted = torch.stack(gradients).view(steps, kind.parts, 2, N).transpose(1, 2).flatten(2)
    assert found.delta is not None
    torch.testing.assert_close(found.delta, wanted[..., order])


def in_their_order(ours: Tensor, shown: Tensor) -> list[int]:
    """Which entry of our state each entry shown is: the parts are ordered by when they are made."""
    return [int((ours - value).abs().argmin()) for value in shown]


def test_one_cell_called_twice_in_every_step_stays_the_cells() -> None:
    class Twice(Several):
        def advance(self, rows: Tensor, t: int, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (self.a(rows[:, 0].flip(-1), self.a(rows[:, 0], *state)),)

    (found,), kept, _ = seen(Twice().to(D), torch.randn(1, 8, 3, dtype=D), quantities=QUANTITIES)
    assert found.place == "a" and found.steps == 16 and not kept.reasons()


def test_where_the_whole_step_is_refused_its_cells_are_not_shown_alone() -> None:
    """The cell alone would hold fixed what the first one makes of the state."""

    class Long(FusedInside):
        length = 70

    model, x = Long().to(D).requires_grad_(False), torch.randn(1, 4 * 70, 3, dtype=D)
    found, kept, _ = seen(model, x, quantities=QUANTITIES)
    (reason,) = (reason for reason in kept.reasons() if "recurrence" in reason)
    assert not found
    assert reason.startswith(
        "The recurrence in model is not shown: its steps cannot be run again (a fused module with "
    )
