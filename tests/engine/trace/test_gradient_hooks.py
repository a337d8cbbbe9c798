"""Hooks on tensors within a recurrence: those that change the gradient are told, those that only look change nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D, H, T = torch.float64, 4, 6
KEYS = ("gradients", "gradient/vectors", "gradient/lag_map", "bptt", "truncation")
SPLIT = ("gradient/lag_map", "bptt", "truncation")


def half(g: Tensor) -> Tensor:
    return g * 0.5


def clipped(g: Tensor) -> None:
    g.clamp_(-0.1, 0.1)


def look(g: Tensor) -> None:
    assert g.isfinite().all()


class Net(nn.Module):
    """`kind`: the step is a line of its own, a cell, or a fused module; `at`: what the hook is on."""

    def __init__(self, kind: str, hook: Callable[[Tensor], Any], at: str) -> None:
        super().__init__()
        self.a, self.b, self.cell = nn.Linear(3, H), nn.Linear(H, H), nn.GRUCell(3, H)
        self.rnn, self.out = nn.GRU(3, H, batch_first=True), nn.Linear(H, 1)
        self.kind, self.hook, self.at = kind, hook, at

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            if self.kind == "cell":
                h = self.cell(x[:, t], h)
            elif self.kind == "fused":
                h = self.rnn(x[:, t : t + 1], h[None])[1][0]
            else:
                z = self.a(x[:, t]) + self.b(h)
                h = torch.tanh(z)
            hooked = {"h": h, "z": z} if self.kind == "own" else {"h": h}
            if self.at in hooked and hooked[self.at].requires_grad:
                hooked[self.at].register_hook(self.hook)
            out.append(h.square().sum(-1))
        found = torch.stack(out, 1)
        if self.at == "out" and found.requires_grad:
            found.register_hook(self.hook)
        return found


def run(net: Net) -> Kept:
    torch.manual_seed(1)
    kept, x = Kept(), torch.randn(1, T, 3, dtype=D)
    subject = Subject(model=net, kind="vectors", width=3, loss=lambda out, batch: out)
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=KEYS))
    return kept


def made(kind: str, hook: Callable[[Tensor], Any], at: str) -> Net:
    torch.manual_seed(0)
    return Net(kind, hook, at).to(D)


@pytest.mark.parametrize(("kind", "at"), [("own", "h"), ("own", "z"), ("cell", "h"), ("fused", "h")])
@pytest.mark.parametrize("hook", [half, clipped])
def test_a_hook_that_changes_the_gradient_is_told(hook: Callable[[Tensor], Any], kind: str, at: str) -> None:
    kept = run(made(kind, hook, at))
    split = [name for name in kept.names() for key in SPLIT if f":{key}" in name]
    assert not split
    reasons = {one.channel.partition(":")[2]: one.reason for one in kept.refusals()}
    assert all("A hook on a tensor (register_hook) changed the gradient" in reasons[key] for key in SPLIT)


def test_the_gradient_at_the_states_is_that_of_the_run() -> None:
    net, seen = made("own", half, "h"), []

    def hook(g: Tensor) -> Tensor:
        seen.append(g[0] * 0.5)
        return g * 0.5

    net.hook = hook
    shown = run(net).array("model:gradient/h")
    np.testing.assert_allclose(shown, torch.stack(seen[::-1]), rtol=1e-12)


def test_a_run_does_not_keep_the_tensors_of_hooks() -> None:
    kept_alive: list[weakref.ref[Tensor]] = []

    class Noting(Net):
        def forward(self, x: Tensor) -> Tensor:
            h = self.b(self.a(x[:, 0]))
            h.register_hook(half)
            kept_alive.append(weakref.ref(h))
            return h.square().sum(-1, keepdim=True).expand(-1, x.shape[1])

    torch.manual_seed(0)
    run(Noting("own", half, "h").to(D))
    gc.collect()
    assert kept_alive and kept_alive[0]() is None


@pytest.mark.parametrize(("kind", "at", "hook"), [
    ("own", "h", look), ("own", "z", look), ("cell", "h", look), ("fused", "h", look), ("own", "out", half),
])  # fmt: skip
def test_a_hook_that_only_looks_or_is_elsewhere_changes_nothing(
    kind: str, at: str, hook: Callable[[Tensor], Any]
) -> None:
    kept = run(made(kind, hook, at))
    assert all(any(f":{key}" in name for name in kept.names()) for key in SPLIT)
    assert not any("register_hook" in reason for reason in kept.reasons())
