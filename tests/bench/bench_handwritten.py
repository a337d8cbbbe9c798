"""A hand-written cell: noting its operations, finding the recurrence in them, and its Jacobians, against what one pays
otherwise: the plain loop, and torch.autograd.functional.jacobian step by step."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.probes.handwritten import Handwritten
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

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
    elif probe._recorder is not None:
        probe._recorder.forget()  # with the collector at rest, what is not let go stays, and the next run is slower
    trace.after_forward.clear()
    return trace


class Lstm(nn.Module):
    """One linear map, four chunks, all in one loop."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map, self.width = nn.Linear(2 * width, 4 * width), width

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], self.width)
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = self.map(torch.cat((x[:, t], h), -1)).chunk(4, -1)
            i = torch.sigmoid(i)
            f = torch.sigmoid(f)
            g = torch.tanh(g)
            o = torch.sigmoid(o)
            c = f * c + i * g
            h = o * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


def run(model: nn.Module, x: Tensor) -> Trace:
    """What `inspector run` does for states and gates, under every probe, but for writing them to disk."""
    subject = Subject(model=model, kind="vectors", width=x.shape[-1])
    batch = Batch(x, torch.full((x.shape[0],), x.shape[1]))
    return perform(subject, batch, Nothing(), RunOptions(only=("states", "gates")))


def against_the_loop(name: str, model: nn.Module, x: Tensor) -> list[Row]:
    """The recording alone, with what is found in it, and the whole run, against the plain loop of the same round."""
    with torch.no_grad():
        times = interleave(
            {"seen": partial(watched, model, x, find=False), "found": partial(watched, model, x, find=True),
             "whole": partial(run, model, x), "plain": partial(model, x)}, 9,
        )  # fmt: skip
    return [
        Row(f"hand-written {name}: {what} / plain loop", times[key], times["plain"], times[key] / times["plain"], "≤ 2")
        for key, what in {
            "seen": "every operation noted",
            "found": "noted, recurrence, gates and check",
            "whole": "the whole run for states and gates",
        }.items()
    ]


def rows() -> list[Row]:
    """T = 512, H = 256, float32, one thread; Python's collector rests, as it does during a run."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(1, STEPS, WIDTH)
    gc.disable()
    found = [
        row
        for name, model in {"GRU": Gru(WIDTH).eval(), "LSTM": Lstm(WIDTH).eval()}.items()
        for row in against_the_loop(name, model, x)
    ]
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
