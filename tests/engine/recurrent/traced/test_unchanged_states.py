"""States that some steps leave unchanged, so that one tensor is the state of several steps: gradients against autograd.

The reference adds a zero of its own to the state after every step, which makes each state a tensor of its own; nothing
of the app is in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 12
Held = Callable[[Tensor], Tensor]


class Model(nn.Module):
    """`held` is applied to every state after its step; the app sees it as it is."""

    first = 2
    """The first step that makes a state that parameters are in."""
    shown: tuple[int, ...] = tuple(range(T))
    """The steps that are on the axis of the app."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(IN, H), nn.Linear(H, H), nn.Linear(H, 1)
        self.held: Held = lambda h: h

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.a(x) + self.b(h))


class EveryThird(Model):
    """The loss reads the state at every step, and every third step makes a new one."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            if t % 3 == 2:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out.append(self.out(h)[:, 0] * x[:, t, 0])
        return torch.stack(out, 1)


class Listed(Model):
    """The states are collected and read after the loop."""

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            row = x[:, t]
            if float(row[0, 0]) > -0.2 or t < 2:
                h = self.step(row, h)
            h = self.held(h)
            states.append(h)
        return self.out(torch.stack(states, 1))[..., 0] * x[..., 1]

    first = 0


class Concatenated(Model):
    """As a row each, joined after the loop; a memory goes on at every step."""

    first = 0

    def forward(self, x: Tensor) -> Tensor:
        h, states = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            row = x[:, t]
            if t % 4 in (0, 1):
                h = self.step(row, h)
            h = self.held(h)
            states.append(h[:, None] * row[:, :1, None])
        return self.out(torch.cat(states, 1))[..., 0].square()


class AtTheHead(Model):
    """The loss of a step reads the state before it."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            out.append(self.out(h)[:, 0] * x[:, t, 0])
            if t % 3 == 2:
                h = self.step(x[:, t], h)
            h = self.held(h)
        return torch.stack(out, 1)


class Penalised(Model):
    """The loss reads a value inside the step, too."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            more = 0.0
            if t % 3 == 2:
                keep = torch.sigmoid(self.a(x[:, t]) + h)
                h = keep * h + (1 - keep) * torch.tanh(self.b(x[:, t] @ self.a.weight.T))
                more = keep.square().sum(-1)
            h = self.held(h)
            out.append(self.out(h)[:, 0] * x[:, t, 0] + more)
        return torch.stack(out, 1)


class ReadTwice(Model):
    """One call reads the state twice, another one through a view."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            if t % 3 != 1 and t > 1:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out.append((h * h).sum(-1) + torch.cat((h, h), -1)[:, 2:6].sin().sum(-1) * x[:, t, 1] + self.out(h)[:, 0])
        return torch.stack(out, 1)


class OnlyTheLast(Model):
    """Only the last state is read; the last steps change nothing."""

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), H)
        for t in range(x.shape[1]):
            row = x[:, t] * 2
            if 2 <= t < 9:
                h = self.step(row, h)
            h = self.held(h)
        last = self.out(h)[:, 0]
        return torch.cat((torch.full((len(x), T - 1), torch.nan, dtype=D), last[:, None]), 1)


def run(model: nn.Module, x: Tensor, *keys: str) -> Kept:
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out)
    perform(subject, Batch(x, torch.tensor([x.shape[1]] * len(x))), kept, RunOptions(only=keys))
    return kept


def reference(model: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """(∂L/∂h_t (t, h) of the first sequence, ‖∂ℓ_t/∂h_k‖ (t, t))."""
    added: list[Tensor] = []

    def held(h: Tensor) -> Tensor:
        added.append(torch.zeros_like(h, requires_grad=True))
        return h + added[-1]

    model.held = held
    losses = model(x)[0]
    model.held = lambda h: h
    rows = []
    for loss in losses:
        found = torch.autograd.grad(loss, added, retain_graph=True, allow_unused=True, materialize_grads=True)
        rows.append(torch.stack([one[0] for one in found]) * float(torch.isfinite(loss)))
    every = torch.stack(rows).nan_to_num()
    return every.sum(0), every.norm(dim=2)


class Older(Model):
    """The loss reads the state of two steps ago."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        before = older = h
        for t in range(x.shape[1]):
            older, before = before, h
            if t % 3 != 1:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out.append(self.out(older)[:, 0] * x[:, t, 0] + h.sin().sum(-1))
        return torch.stack(out, 1)

    first = 0


class Written(Model):
    """The states are written into a tensor: the iterations that make a state are seen alone."""

    first, shown = 0, (2, 5, 8, 11)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), x.new_zeros(len(x), x.shape[1], H)
        for t in range(x.shape[1]):
            if t % 3 == 2:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out[:, t] = h
        return self.out(out)[..., 0] * x[..., 0]


class Learned(Model):
    """The first state is a parameter, and the first step leaves it as it is."""

    first, shown = 0, tuple(range(2, T))

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.randn(1, H))

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.begin.expand(len(x), H), []
        for t in range(x.shape[1]):
            if t % 3 == 2:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out.append(self.out(h)[:, 0] * x[:, t, 0])
        return torch.stack(out, 1)


class Summed(Model):
    """A mean is made of the state, without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            if t % 2 == 1:
                h = self.step(x[:, t], h)
            h = self.held(h)
            out.append(h.sum(-1) * 2)
        return torch.stack(out, 1)

    first = 1


MODELS = [
    Older, Written, Learned, Summed, EveryThird, Listed, Concatenated, AtTheHead, Penalised, ReadTwice, OnlyTheLast,
]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("kind", MODELS)
def test_losses_count_at_the_step_that_they_read(kind: type[Model], batch: int) -> None:
    torch.manual_seed(3)
    model, x = kind().double(), torch.randn(batch, T, IN, dtype=D)
    kept = run(model, x, "gradients", "gradient/vectors", "gradient/lag_map")
    total, by_loss = (one[list(model.shown)] for one in reference(model, x))
    by_loss = by_loss[:, list(model.shown)]
    begin = len(kept.array("model:gradient/h")) - len(total)  # a first iteration that made nothing
    shown, norms = kept.array("model:gradient/h")[begin:], kept.array("model:gradient/state_norm")[begin:]
    known = ~np.isnan(norms)
    assert known[model.first :].all()
    np.testing.assert_allclose(shown[known], total[known], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(norms[known], total.norm(dim=1)[known], rtol=1e-9, atol=1e-12)
    if kind not in (AtTheHead, Penalised, Older, Written):  # what a loss reads of earlier steps counts where it arrives
        own = np.ix_(known, known)
        np.testing.assert_allclose(kept.array("model:gradient/lag_map")[own], by_loss[own], rtol=1e-9, atol=1e-12)


class SlowAndFast(Model):
    """A slow state that the fast one reads at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.slow = nn.Linear(IN + 2 + H, H), nn.Linear(H + 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        a, b, out = x.new_zeros(len(x), H), x.new_zeros(len(x), 2), []
        for t in range(x.shape[1]):
            a = torch.tanh(self.fast(torch.cat((x[:, t], b, a), -1)))
            if t % 3 == 2:
                b = torch.tanh(self.slow(torch.cat((a, b), -1)))
            b = self.held(b)
            out.append(a.square().sum(-1) + b.sin().sum(-1))
        return torch.stack(out, 1)


def test_a_slow_state_has_a_gradient_at_every_step() -> None:
    torch.manual_seed(3)
    model, x = SlowAndFast().double(), torch.randn(1, T, IN, dtype=D)
    kept = run(model, x, "gradients", "gradient/lag_map")
    expected = reference(model, x)[0].norm(dim=1)
    shown = kept.array("model:gradient/state_norm/b")
    assert np.isnan(shown[:2]).all(), "autograd has not followed the first value"
    np.testing.assert_allclose(shown[2:], expected[2:], rtol=1e-9)
    rows = kept.array("model:gradient/lag_map")
    assert np.isnan(rows[0, 0]) and np.isnan(rows[1, :2]).all() and not np.isnan(rows[2:]).any()


class AsOutput(Model):
    """The app cannot see how the loss reads what a model returns."""

    def forward(self, x: Tensor) -> list[Tensor]:  # type: ignore[override]
        h, states = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            row = x[:, t] * 2
            if t % 3 == 0:
                h = self.step(row, h)
            states.append(h)
        return states


def test_what_cannot_be_told_apart_is_refused_with_the_reason() -> None:
    torch.manual_seed(3)
    model, x, kept = AsOutput().double(), torch.randn(1, T, IN, dtype=D), Kept()
    weights = torch.linspace(0.5, 2, T, dtype=D)
    subject = Subject(
        model=model, kind="vectors", width=IN,
        loss=lambda out, batch: torch.stack([h.square().sum(-1) for h in out], 1) * weights,
    )  # fmt: skip
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=("gradients", "gradient/lag_map", "bptt")))
    assert not [name for name in kept.names() if name.startswith(("model:gradient", "model:bptt"))]
    reasons = {one.channel: one.reason for one in kept.refusals()}
    assert "Steps of model leave h unchanged (the first one is step 1)" in reasons["model:gradient"]
    assert not any("No gradient of the loss" in reason for reason in reasons.values())
