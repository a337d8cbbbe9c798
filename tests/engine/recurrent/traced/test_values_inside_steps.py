"""Losses that read a value inside a step, gradients that are cut, parts that read each other: against autograd.

The reference runs the cell with parameters of their own at every step; nothing of the app is in it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from kept import Kept, uncut
from torch import Tensor, nn
from torch.func import functional_call

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Trace

D = torch.float64
IN, H, T = 3, 4, 8
State = tuple[Tensor, ...]
sigma, tanh = torch.sigmoid, torch.tanh


class Cell(nn.Module):
    """An LSTM's equations; (output, state) from (x, *state)."""

    parts = 2

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, 4 * H)

    def start(self, x: Tensor) -> State:
        return tuple(x.new_zeros(len(x), H) for _ in range(self.parts))

    def gates(self, x: Tensor, h: Tensor) -> State:
        return self.map(torch.cat((x, h), -1)).chunk(4, -1)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        i, f, g, o = self.gates(x, h)
        c = sigma(f) * c + sigma(i) * tanh(g)
        h = sigma(o) * tanh(c)
        return h, (h, c)


class Zoneout(Cell):
    """The output is h before the mask."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        new, (_, memory) = super().forward(x, h, c)
        return new, (0.3 * h + 0.7 * new, 0.4 * c + 0.6 * memory)


class OneTensor(Cell):
    """h and c are carried as one tensor, and only h is read."""

    def start(self, x: Tensor) -> State:
        return (x.new_zeros(len(x), 2 * H),)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, State]:  # type: ignore[override]
        h, both = super().forward(x, state[:, :H], state[:, H:])
        return h, (torch.cat(both, -1),)


class AuxiliaryGate(Cell):
    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        i, f, g, o = self.gates(x, h)
        forget = sigma(f)
        c = forget * c + sigma(i) * tanh(g)
        h = sigma(o) * tanh(c)
        return torch.cat((h, forget * 0.5), -1), (h, c)


class Regularised(Cell):
    """The pre-activations of all gates, before they are taken apart."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        z = self.map(torch.cat((x, h), -1))
        i, f, g, o = z.chunk(4, -1)
        c = sigma(f) * c + sigma(i) * tanh(g)
        h = sigma(o) * tanh(c)
        return torch.cat((h, z.square()), -1), (h, c)


class OutputGate(Cell):
    """Only c is a state; the output gate is in no path from one c to the next."""

    parts = 1

    def forward(self, x: Tensor, c: Tensor) -> tuple[Tensor, State]:  # type: ignore[override]
        i, f, g, o = self.gates(x, c)
        c = sigma(f) * c + sigma(i) * tanh(g)
        return sigma(o) * tanh(c), (c,)


class HyperLstm(nn.Module):
    """Four parts that read each other within a step (Ha, Dai & Le 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.main, self.scale = nn.Linear(IN + H + 3, 12), nn.Linear(IN + H, 4 * H), nn.Linear(3, 4 * H)

    def start(self, x: Tensor) -> State:
        return tuple(x.new_zeros(len(x), n) for n in (H, H, 3, 3))

    def forward(self, x: Tensor, h: Tensor, c: Tensor, small: Tensor, memory: Tensor) -> tuple[Tensor, State]:
        i, f, g, o = self.small(torch.cat((x, h, small), -1)).chunk(4, -1)
        memory = sigma(f) * memory + sigma(i) * tanh(g)
        small = sigma(o) * tanh(memory)
        scale = self.scale(small)
        i, f, g, o = (self.main(torch.cat((x, h), -1)) * scale).chunk(4, -1)
        c = sigma(f) * c + sigma(i) * tanh(g)
        h = sigma(o) * tanh(c)
        return self.read(h, scale), (h, c, small, memory)

    def read(self, h: Tensor, scale: Tensor) -> Tensor:
        return h


class HyperScale(HyperLstm):
    """The loss also reads the scales that one network gives the other."""

    def read(self, h: Tensor, scale: Tensor) -> Tensor:
        return torch.cat((h, scale), -1)


class Chained(nn.Module):
    """Each part reads those that were made before it in the step."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d, self.x = (nn.Linear(n, H) for n in (H, H, H, H, IN))

    def start(self, x: Tensor) -> State:
        return (x.new_full((len(x), H), 0.3),) * 4

    def forward(self, x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, State]:
        a = tanh(self.a(a) + self.x(x) + 0.3 * d)
        b = tanh(self.b(b + a))
        c = tanh(self.c(c * b) + a)
        d = tanh(self.d(d) + c * a + b)
        return d + b, (a, b, c, d)


class StoppedOutput(Cell):
    """h is made from a detached c."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        i, f, g, o = self.gates(x, h)
        c = sigma(f) * c + sigma(i) * tanh(g)
        h = sigma(o) * tanh(c.detach()) + 0.1 * c
        return h, (h, c)


class StoppedGates(Cell):
    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, State]:
        return super().forward(x, h.detach(), c)


class GateWithoutGradient(Cell):
    parts = 1

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, State]:  # type: ignore[override]
        _, _, g, o = self.gates(x, h)
        with torch.no_grad():
            keep = sigma(o)
        h = keep * h + (1 - keep) * tanh(g)
        return h, (h,)


class Model(nn.Module):
    """A loop that detaches: nothing, every state before or after every third step, or the last part before it."""

    def __init__(self, cell: nn.Module, cut: str = "") -> None:
        super().__init__()
        self.cell, self.cut = cell, cut

    def forward(self, x: Tensor) -> Tensor:
        state, out = self.cell.start(x), []
        for t in range(x.shape[1]):
            if self.cut == "before" and t % 3 == 0:
                state = (state[0].detach(), state[1].detach())
            if self.cut == "part" and t % 3 == 0:
                state = (*state[:-1], state[-1].detach())
            y, state = self.cell(x[:, t], *state)
            out.append(y)
            if self.cut == "after" and t % 3 == 2:
                state = (state[0].detach(), state[1].detach())
        return torch.stack(out, 1)


CELLS = [
    Zoneout, OneTensor, AuxiliaryGate, Regularised, OutputGate, HyperLstm, HyperScale, Chained, StoppedOutput,
    StoppedGates, GateWithoutGradient,
]  # fmt: skip
MODELS = [(kind, "") for kind in CELLS] + [
    (kind, cut) for kind in (Cell, Zoneout, AuxiliaryGate) for cut in ("before", "after", "part")
]


def made(kind: type[nn.Module], cut: str, b: int, look_at: int, *keys: str) -> tuple[Model, Tensor, Kept, Trace]:
    torch.manual_seed(1)
    model, x, kept = Model(kind(), cut).double(), torch.randn(b, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    trace = perform(subject, Batch(x, torch.tensor([T] * b), look_at=look_at), kept, RunOptions(only=keys))
    return model, x[look_at : look_at + 1], kept, trace


def cut_before(model: Model, t: int, state: State) -> State:
    """The state that step t reads."""
    whole = (model.cut == "before" and t % 3 == 0) or (model.cut == "after" and t % 3 == 0 and t > 0)
    if whole:
        return tuple(part.detach() for part in state)
    return (*state[:-1], state[-1].detach()) if model.cut == "part" and t % 3 == 0 else state


def contributions(model: Model, x: Tensor) -> dict[str, Tensor]:
    """{parameter: (t, k, …)}: the gradient of step t's loss for step k's own copy of the cell's parameters."""
    cell = model.cell
    leaves = [{n: p.detach().clone().requires_grad_() for n, p in cell.named_parameters()} for _ in range(T)]
    state = cell.start(x)
    found = {n: torch.zeros(T, T, *p.shape, dtype=D) for n, p in cell.named_parameters()}
    for t in range(T):
        y, state = functional_call(cell, leaves[t], (x[:, t], *cut_before(model, t, state)))
        for n, items in found.items():
            gradients = torch.autograd.grad(
                y.square().sum(), [leaf[n] for leaf in leaves], retain_graph=True, allow_unused=True,
                materialize_grads=True,
            )  # fmt: skip
            items[t] = torch.stack(gradients)
    return found


@pytest.mark.parametrize(("b", "look_at"), [(1, 0), (3, 1)])
@pytest.mark.parametrize(("kind", "cut"), MODELS)
def test_the_items_are_those_of_the_graph_as_it_ran(kind: type[nn.Module], cut: str, b: int, look_at: int) -> None:
    model, x, kept, trace = made(kind, cut, b, look_at, "bptt", "truncation")
    place, lag = trace.recurrences[0].place, torch.arange(T)[:, None] - torch.arange(T)
    assert len(trace.recurrences) == 1 and not uncut(kept)
    every = contributions(model, x)
    for name, items in every.items():
        base = f"{place}:bptt/cell.{name}"
        np.testing.assert_allclose(kept.array(base), items.flatten(2).norm(dim=2), rtol=1e-9, atol=1e-13)
        by_lag = [float(items[lag == n].sum(0).norm()) for n in range(T)]
        np.testing.assert_allclose(kept.array(f"{base}/lag")[0], by_lag, rtol=1e-9, atol=1e-13)
        assert kept.scalar(f"{base}/check_error") < 1e-11
    near, whole = (
        torch.cat([items[keep].sum(0).flatten() for items in every.values()])
        for keep in ((lag >= 0) & (lag < 3), lag >= 0)
    )
    error = float((near - whole).norm() / whole.norm())
    assert kept.array(f"{place}:truncation/all")[1, 2] == pytest.approx(error, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("kind", CELLS)
def test_the_lag_map_is_the_gradient_of_each_steps_loss_at_every_earlier_state(kind: type[nn.Module]) -> None:
    model, x, kept, trace = made(kind, "", 2, 1, "gradient/lag_map")
    cell, state = model.cell, model.cell.start(x)
    expected = torch.zeros(T, T, dtype=D)
    for k in range(T - 1):
        _, state = cell(x[:, k], *state)
        given = current = tuple(part.detach().clone().requires_grad_() for part in state)
        for t in range(k + 1, T):
            y, current = cell(x[:, t], *current)
            gradients = torch.autograd.grad(
                y.square().sum(), given, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            expected[t, k] = math.sqrt(sum(float(one.square().sum()) for one in gradients))
    shown = torch.tensor(kept.array(f"{trace.recurrences[0].place}:gradient/lag_map")).tril(-1)
    torch.testing.assert_close(shown, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("kind", [HyperLstm, Chained])
def test_each_parts_gradient_holds_the_other_parts_of_its_step_fixed(kind: type[nn.Module]) -> None:
    """δ_t by a loss on leaves: all parts of the state after step t, read by the steps that follow and by the output."""
    _, x, _, trace = made(kind, "", 1, 0, "states")
    (found,) = trace.recurrences
    torch.manual_seed(1)
    model = Model(kind()).double()
    cell, state, truth = model.cell, model.cell.start(x), []
    for t in range(T):
        _, state = cell(x[:, t], *state)
        given = current = tuple(part.detach().clone().requires_grad_() for part in state)
        read = current[0] if kind is HyperLstm else current[3] + current[1]
        loss = read.square().sum()
        for n in range(t + 1, T):
            y, current = cell(x[:, n], *current)
            loss = loss + y.square().sum()
        truth.append(torch.autograd.grad(loss, given, allow_unused=True, materialize_grads=True))
    assert found.delta is not None
    shown = sorted(float(found.delta[2, 0, part].norm()) for part in found.cell.parts.values())
    assert shown == pytest.approx(sorted(float(one.norm()) for one in truth[2]), rel=1e-9)
    size = torch.stack([torch.cat(one, -1).norm() for one in truth])
    torch.testing.assert_close(found.delta[:, 0].norm(dim=1), size, rtol=1e-9, atol=1e-13)


class Tied(Cell):
    """The recurrent weight is the read-out too: its gradient is not a sum over the recurrence's own steps."""

    parts = 1

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(H, H) / 2)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, State]:  # type: ignore[override]
        h = tanh(h @ self.w.T + self.gates(x, h)[0])
        return h @ self.w.T, (h,)


def test_a_weight_that_something_else_reads_is_refused_with_the_difference() -> None:
    _, _, kept, trace = made(Tied, "", 1, 0, "bptt", "truncation")
    place = trace.recurrences[0].place
    reasons = {refusal.channel: refusal.reason for refusal in kept.refusals()}
    assert set(reasons) == {f"{place}:bptt/cell.w", *(f"{place}:truncation/{n}" for n in ("cell.w", "all", "adaptive"))}
    assert "of the gradient of cell.w that the model's own backward pass gave" in reasons[f"{place}:bptt/cell.w"]
    assert f"{place}:bptt/cell.map.weight" in kept.names()
