"""A loop that computes its loss itself and whose gradient stops once: items, map and truncation against autograd.

The reference is a plain float64 loop with parameters of its own, and a zero that is added to each part, at every step.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.func import functional_call

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T, CUT, NEAR = 3, 4, 8, 3, 2
State = tuple[Tensor, ...]
sigma, tanh = torch.sigmoid, torch.tanh


class Tanh(nn.Module):
    parts = 1

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(IN, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> State:
        return (tanh(self.x(x) + self.h(h)),)


class Lstm(nn.Module):
    parts = 2

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, 4 * H)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        i, f, g, o = self.map(torch.cat((x, h), -1)).chunk(4, -1)
        c = sigma(f) * c + sigma(i) * tanh(g)
        return sigma(o) * tanh(c), c


class Model(nn.Module):
    """The state is detached at the end of step CUT - 1, or the steps before CUT run without gradient; the loss of a
    step is computed in it, at each step or from step CUT on."""

    def __init__(self, cell: nn.Module, cut: str, early: str) -> None:
        super().__init__()
        self.cell, self.cut, self.early = cell, cut, early

    def forward(self, x: Tensor) -> Tensor:
        state, losses = (x.new_zeros(len(x), H),) * self.cell.parts, []
        for t in range(T):
            with torch.set_grad_enabled(self.cut == "detach" or t >= CUT):
                state = self.cell(x[:, t], *state)
                if self.cut == "detach" and t == CUT - 1:
                    state = tuple(part.detach() for part in state)
            counts = self.early == "loss" or t >= CUT
            losses.append(state[0].square().sum(-1) if counts else x.new_zeros(len(x)))
        return torch.stack(losses, 1)


def reference(model: Model, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """{parameter: (t, k, …)}, (t, k): gradients of step t's loss at step k's parameters, and their norm at its state.

    A state without gradient that a step with one reads is a leaf, at which later losses have a gradient.
    """
    cell = model.cell
    own = [{n: p.detach().clone().requires_grad_() for n, p in cell.named_parameters()} for _ in range(T)]
    items = {n: torch.zeros(T, T, *p.shape, dtype=D) for n, p in cell.named_parameters()}
    added: list[State] = []
    state: State = (x.new_zeros(1, H),) * cell.parts
    lags = torch.zeros(T, T, dtype=D)
    for t in range(T):
        state = functional_call(cell, own[t], (x[:, t], *state))
        added.append(tuple(x.new_zeros(1, H).requires_grad_() for _ in state))
        alone = model.cut == "burn in" and t < CUT
        state = tuple(part.detach() for part in state) if alone else state
        state = tuple(part + zero for part, zero in zip(state, added[-1], strict=True))
        if model.cut == "detach" and t == CUT - 1:
            state = tuple(part.detach() for part in state)
        if t >= CUT or (model.early == "loss" and model.cut == "detach" and t < CUT - 1):
            wanted = [p for step in own for p in step.values()] + [zero for step in added for zero in step]
            found = torch.autograd.grad(
                state[0].square().sum(), wanted, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            for n, name in enumerate(items):
                items[name][t] = torch.stack(found[n : T * len(items) : len(items)])
            sizes = [float(one.square().sum()) for one in found[T * len(items) :]]
            for k in range(t + 1):
                lags[t, k] = math.sqrt(sum(sizes[k * cell.parts : (k + 1) * cell.parts]))
    return items, lags


@pytest.mark.parametrize("early", ["loss", "none"])
@pytest.mark.parametrize("cut", ["detach", "burn in"])
@pytest.mark.parametrize("kind", [Tanh, Lstm])
def test_the_steps_after_the_cut_have_their_lags(kind: type[nn.Module], cut: str, early: str) -> None:
    torch.manual_seed(1)
    model, x, kept = Model(kind(), cut, early).double(), torch.randn(2, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda losses, _: losses)
    wanted = ("bptt", "truncation", "gradient/lag_map", "gradient/state_derivatives")
    perform(subject, Batch(x, torch.tensor([T] * 2), look_at=1), kept, RunOptions(only=wanted))
    (place,) = {name.rpartition(":gradient/lag_map")[0] for name in kept.names() if name.endswith(":gradient/lag_map")}
    assert all(one.channel == f"{place}:gradient/past_cuts" for one in kept.refusals())
    items, lags = reference(model, x[1:])
    for name, own in items.items():
        base = f"{place}:bptt/cell.{name}"
        np.testing.assert_allclose(kept.array(base), own.flatten(2).norm(dim=2), rtol=1e-9, atol=1e-13)
        assert kept.scalar(f"{base}/check_error") < 1e-11
    shown = np.nan_to_num(kept.array(f"{place}:gradient/lag_map"))
    np.testing.assert_allclose(shown, lags, rtol=1e-9, atol=1e-13)
    lag = torch.arange(T)[:, None] - torch.arange(T)
    near, whole = (
        torch.cat([own[keep].sum(0).flatten() for own in items.values()])
        for keep in ((lag >= 0) & (lag < NEAR), lag >= 0)
    )
    error = float((near - whole).norm() / whole.norm())
    assert error > 0.01
    assert kept.array(f"{place}:truncation/all")[1, NEAR - 1] == pytest.approx(error, rel=1e-7)
