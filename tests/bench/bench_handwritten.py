"""A hand-written cell: noting its operations, finding the recurrence in them, and its Jacobians, against what one pays
otherwise: the plain loop, and torch.autograd.functional.jacobian step by step."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.emitter import Emitter
from inspector.engine.probes.handwritten import Handwritten
from inspector.engine.subject import Batch, Subject
from inspector.engine.trace import Trace

STEPS, WIDTH = 512, 256


class Nothing:
    """A sink that drops everything."""

    def write(self, record: Any) -> None:
        """Drop it."""


class Gru(nn.Module):
    """A textbook GRU in a Python loop."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(width, 3 * width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        xr, xz, xn = self.w(x).chunk(3, -1)
        hr, hz = self.u(h).chunk(2, -1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        candidate = torch.tanh(xn + self.v(r * h))
        return z * h + (1 - z) * candidate

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.v.in_features)
        out = []
        for t in range(x.shape[1]):
            h = self.step(x[:, t], h)
            out.append(h)
        return torch.stack(out, 1)


def watched(model: nn.Module, x: Tensor, *, find: bool) -> Trace:
    """The run under the probe; with `find` what it saw is turned into a recurrence, gates and all."""
    trace = Trace(Subject(model=model), Batch(x, torch.full((x.shape[0],), x.shape[1])))
    emit, probe = Emitter(Nothing()), Handwritten()
    probe.attach(model, trace, emit)
    model(x)
    probe.detach()
    if find:
        probe.finish(trace, emit)
    return trace


def rows() -> list[Row]:
    """T = 512, H = 256, float32, one thread; Python's collector rests, as it does during a run."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x = Gru(WIDTH).eval(), torch.randn(1, STEPS, WIDTH)
    gc.disable()
    with torch.no_grad():
        times = interleave(
            {"seen": partial(watched, model, x, find=False), "found": partial(watched, model, x, find=True),
             "plain": partial(model, x)}, 5,
        )  # fmt: skip
    found = [
        Row("hand-written GRU: every operation noted / plain loop", times["seen"], times["plain"],
            times["seen"] / times["plain"], "≤ 2"),
        Row("hand-written GRU: noted, recurrence, gates and check / plain loop", times["found"], times["plain"],
            times["found"] / times["plain"]),
    ]  # fmt: skip
    small, short = Gru(64).eval(), torch.randn(1, 128, 64)
    with torch.no_grad():
        (recurrence,) = watched(small, short, find=True).recurrences

    def naive() -> None:
        for t in range(128):
            row, before = short[:, t], recurrence.states[t]
            torch.autograd.functional.jacobian(lambda h, row=row: small.step(row, h), before)

    times = interleave({"ours": lambda: recurrence.block(0, 128).jacobian(), "naive": naive}, 3)
    found.append(
        Row("its step Jacobians (T=128, H=64): functional.jacobian a step / recorded steps, batched", times["ours"],
            times["naive"], times["naive"] / times["ours"])
    )  # fmt: skip
    gc.enable()
    return found
