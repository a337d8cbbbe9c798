"""Iterations that did the same are looked at once: what is found is what looking at each of them finds.

Loops whose iterations differ in one way or another are run twice, the second time without twins, in float64.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.functional import dropout

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.recurrent.traced.cells.replayed import ReplayStep
from inspector.engine.recurrent.traced.loops import iteration_classes as twins
from inspector.engine.recurrent.traced.loops.carried_state import analyse
from inspector.engine.recurrent.traced.loops.detection import find_loops
from inspector.engine.recurrent.traced.loops.state_choice import states
from inspector.engine.recurrent.traced.record.recorder import OperationRecorder
from inspector.engine.trace.trace import Recurrence, Trace

D = torch.float64
T, B, X, H = 24, 2, 3, 4


class Base(nn.Module):
    """A plain step; what is special is in `loop`."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        z = torch.sigmoid(self.v(h))
        return z * h + (1 - z) * torch.tanh(self.w(x) + self.u(h))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(self.loop(x, x.new_zeros(x.shape[0], H)), 1)

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        raise NotImplementedError


class Branch(Base):
    """Another branch at some steps."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            row = x[:, t]
            h = torch.relu(self.u(h) + self.w(row)) if t in (5, 6, 17) else self.step(row, h)
            out.append(h)
        return out


class CutShort(Base):
    """The last iteration ends in the middle."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            a = self.w(x[:, t]) + self.u(h)
            if t == x.shape[1] - 1:
                out.append(a)
                break
            h = torch.tanh(a)
            out.append(h)
        return out


class Peeled(Base):
    """The first step is written before the loop, by the same function."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        h = self.step(x[:, 0], h)
        out = [h]
        for t in range(1, x.shape[1]):
            h = self.step(x[:, t], h)
            out.append(h)
        return out


class FirstDiffers(Base):
    """The first iteration has no state yet."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out: list[Tensor] = []
        for t in range(x.shape[1]):
            a = self.w(x[:, t])
            h = torch.tanh(a if not out else a + self.u(h))
            out.append(h)
        return out


class Counted(Base):
    """A number that enters the step differs from step to step, for a while."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(x[:, t]) + self.u(h) * (t if t < 6 else 6))
            out.append(h)
        return out


class Skipped(Base):
    """The state is left as it is at some steps."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            a = self.w(x[:, t])
            if t % 5 != 3:
                h = torch.tanh(a + self.u(h))
            out.append(h + a)
        return out


class Old(Base):
    """States four steps old."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = [h]
        for t in range(x.shape[1]):
            a = self.w(x[:, t]) + self.u(out[-1])
            out.append(torch.tanh(a + self.v(out[-4]) if t > 3 else a))
        return out[1:]


class OldAndSkipped(Base):
    """States two steps old, and steps that leave them."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out, before = [], h
        for t in range(x.shape[1]):
            a = self.w(x[:, t])
            if t % 7 != 4:
                before, h = h, torch.tanh(a + self.u(h) + self.v(before))
            out.append(h + a)
        return out


class Weights(Base):
    """The matrix alternates between two of the same shape."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            matrix = self.u.weight if t % 3 else self.v.weight
            h = torch.tanh(self.w(x[:, t]) + h @ matrix)
            out.append(h)
        return out


class Copies(Base):
    """As many different matrices as there are steps, of which most are the same parameter."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        matrices = [self.v.weight if t == 11 else self.u.weight for t in range(x.shape[1])]
        out = []
        for t, matrix in enumerate(matrices):
            h = torch.tanh(self.w(x[:, t]) + torch.mm(h, matrix))
            out.append(h)
        return out


class Cut(Base):
    """Detached now and then, as truncated backpropagation does."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            h = h.detach() if t % 6 == 5 else h
            h = self.step(x[:, t], h)
            out.append(h)
        return out


class Dropped(Base):
    """Dropout in training."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            h = self.step(x[:, t], dropout(h, 0.3, True))
            out.append(h)
        return out


class NotDropped(Base):
    """Dropout in eval mode returns what it was given."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            h = self.step(dropout(x[:, t], 0.3, False), dropout(h, 0.3, False))
            out.append(h)
        return out


class Buffered(Base):
    """The output is written in place."""

    def forward(self, x: Tensor) -> Tensor:
        out, h = x.new_zeros(*x.shape[:2], H), x.new_zeros(x.shape[0], H)
        for t in range(x.shape[1]):
            h = self.step(x[:, t], h)
            out[:, t] = h
        return out


class BufferRead(Base):
    """The output is written in place, and the state is read from it."""

    def forward(self, x: Tensor) -> Tensor:
        out, h = x.new_zeros(*x.shape[:2], H), x.new_zeros(x.shape[0], H)
        for t in range(x.shape[1]):
            a = self.w(x[:, t]) + self.u(h)
            if t:
                a = a + self.v(out[:, t - 1].clone())
            h = torch.tanh(a)
            out[:, t] = h
        return out


class Scratch(Base):
    """A tensor made in every step is filled in place and read."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            both = torch.zeros_like(h)
            both[:, :2] = self.w(x[:, t])[:, :2]
            h = torch.tanh(both + self.u(h))
            out.append(h)
        return out


class Attending(Base):
    """Attention over all earlier states: what a step is given grows."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = [h]
        for t in range(x.shape[1]):
            past = torch.stack(out, 1)
            weights = torch.softmax((past @ out[-1][..., None])[..., 0], -1)
            out.append(torch.tanh(self.w(x[:, t]) + self.u(out[-1]) + self.v((weights[..., None] * past).sum(1))))
        return out[1:]


class Swapped(Base):
    """Two variables that are exchanged at every step."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        a, b = h, torch.ones_like(h)
        out = []
        for t in range(x.shape[1]):
            a, b = b, torch.tanh(self.w(x[:, t]) + self.u(a) + self.v(b))
            out.append(b)
        return out


class Stacked(Base):
    """Two layers in one loop, the upper one every second step."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        low = high = h
        out = []
        for t in range(x.shape[1]):
            low = torch.tanh(self.w(x[:, t]) + self.u(low))
            if t % 2:
                high = torch.tanh(self.v(high) + low)
            out.append(low + high)
        return out


class Constants(Base):
    """One function, called by a name that means two; keyword arguments in another order."""

    def loop(self, x: Tensor, h: Tensor) -> list[Tensor]:
        out = []
        for t in range(x.shape[1]):
            a = self.w(x[:, t]) + self.u(h)
            more = {"min": -0.5, "max": 0.25} if t % 4 else {"max": 0.25, "min": -0.5}
            h = torch.clamp(a, **more)
            out.append(h)
        return out


CASES = {kind.__name__: kind for kind in Base.__subclasses__()}


def run(model: nn.Module, x: Tensor) -> Trace:
    subject = Subject(model=model, kind="vectors", width=X, loss=lambda out, _: out.square().sum(-1))
    return perform(subject, Batch(x, torch.full((len(x),), x.shape[1])), Kept(), RunOptions(only=("states", "gates")))


def alone(rows: Any) -> Any:
    return np.arange(len(rows))


def assert_same(a: Recurrence, e: Recurrence) -> None:
    assert (a.place, a.module, list(a.cell.parts), a.cell.gate_names) == (
        e.place, e.module, list(e.cell.parts), e.cell.gate_names
    )  # fmt: skip
    exact: dict[str, Any] = {"rtol": 0, "atol": 0, "equal_nan": True}
    torch.testing.assert_close((a.states, a.x, a.known), (e.states, e.x, e.known), **exact)
    assert a.check is not None and e.check is not None and type(a.cell) is type(e.cell)
    found, expected = ((one.check.error, one.delta, one.arriving) for one in (a, e) if one.check is not None)
    torch.testing.assert_close(found, expected, equal_nan=True)  # a first state that autograd has not followed
    torch.testing.assert_close(a.block(0, a.steps).jacobian(), e.block(0, e.steps).jacobian())
    assert isinstance(a.cell, ReplayStep) and isinstance(e.cell, ReplayStep)
    for one, two in zip(a.cell.groups, e.cell.groups, strict=True):
        assert (one.numbers.tolist(), one.shared) == (two.numbers.tolist(), two.shared)
        assert [i.name for i in one.program.instructions] == [i.name for i in two.program.instructions]
        torch.testing.assert_close(one.outside, two.outside, **exact)
    assert [(f.signal, f.symbol, f.gain) for f in a.cell.fed_back] == [
        (f.signal, f.symbol, f.gain) for f in e.cell.fed_back
    ]
    assert (a.cell.squashed, list(a.cell.parameters())) == (e.cell.squashed, list(e.cell.parameters()))
    assert a.cell.without == e.cell.without


@pytest.mark.parametrize("case", sorted(CASES))
def test_twins_give_what_every_iteration_gives(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, x = CASES[case]().double(), torch.randn(B, T, X, dtype=D)
    plain = model(x)
    found = run(model, x)
    monkeypatch.setattr(twins, "_alike", alone)
    expected = run(model, x)
    assert case == "Dropped" or torch.equal(plain, found.output)
    assert torch.equal(found.output, expected.output)
    assert found.recurrences and len(found.recurrences) == len(expected.recurrences)
    for a, e in zip(found.recurrences, expected.recurrences, strict=True):
        assert_same(a, e)


def kinds(model: nn.Module) -> list[list[int]]:
    """Steps by what they did, in the first loop that has a state."""
    recorder = OperationRecorder()
    recorder.begin()
    model(torch.randn(B, T, X, dtype=D))
    recorder.end()
    for loop in find_loops(recorder.table()):
        flow = analyse(loop)
        if states(flow):
            return [members.tolist() for members in flow.twins.members.values()]
    return []


def test_iterations_that_differ_are_no_twins() -> None:
    every = list(range(T))
    assert kinds(Peeled().double()) in ([[0], every[1:-1]], [every[:-1]])
    assert kinds(FirstDiffers().double()) == [[0], every[1:]]
    assert kinds(CutShort().double()) == [[0], every[1:]], (
        "what the last lacks at its end belongs to the next ones' begin"
    )
    other = {0, 5, 6, 7, 17, 18}  # also those that begin with what a branch made
    assert kinds(Branch().double()) == [[0], sorted(set(every) - other), [5, 17], [6], [7, 18]]


def test_what_is_written_in_place_and_read_has_no_twins() -> None:
    every = list(range(T))
    assert kinds(Buffered().double()) == [[0], every[1:]]
    assert kinds(BufferRead().double()) == kinds(Scratch().double()) == [[n] for n in every]


def test_a_step_given_another_parameter_is_another_step() -> None:
    torch.manual_seed(0)
    model = Copies().double()
    (found,) = run(model, torch.randn(B, T, X, dtype=D)).recurrences
    slopes, matrices = 1 - found.states[1:].square(), found.block(0, T).jacobian()
    for t in (0, 10, 11, 12, T - 1):
        weight = (model.v if t == 11 else model.u).weight.detach()
        torch.testing.assert_close(matrices[t], slopes[t][..., None] * weight.T)


def test_what_was_recorded_is_let_go_without_a_collector() -> None:
    seen: list[weakref.ref[Tensor]] = []

    class Told(Peeled):
        def step(self, x: Tensor, h: Tensor) -> Tensor:
            a = self.w(x)
            seen.append(weakref.ref(a))
            return torch.tanh(a + self.u(h))

    gc.collect()
    gc.disable()
    try:
        with torch.no_grad():
            subject = Subject(model=Told(), kind="vectors", width=X)
            trace = perform(
                subject, Batch(torch.randn(B, T, X), torch.full((B,), T)), Kept(), RunOptions(only=("gates",))
            )
        assert trace.recurrences and seen and all(one() is None for one in seen)
    finally:
        gc.enable()
