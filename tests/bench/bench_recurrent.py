"""Capturing fused recurrent modules: everything inside, against the plain call and against a loop over cells."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.fused_rnn import FusedRnn
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace


class Nothing:
    """A sink that drops everything: the benchmark is about capturing, not about the disk."""

    def write(self, record: Any) -> None:
        """Drop it."""


def captured(model: nn.Module, x: Tensor, *, one: bool, gates: bool = True) -> None:
    """The call under the probe, every gate, h and c of every step in memory."""
    b = x.shape[1]
    trace = Trace(Subject(model=model), Batch(x.transpose(0, 1), torch.full((b,), x.shape[0])), only_looked_at=one)
    emit, probe = Emitter(Nothing()), FusedRnn()
    probe.attach(model, trace, emit)
    model(x)
    probe.detach()
    with torch.no_grad():
        probe.finish(trace, emit)
        trace.after_the_states()
        for item in trace.recurrences if gates else ():
            kept = item.block(0, item.steps).gates
            assert kept


def rows() -> list[Row]:
    """T = 512, H = 256, float32, one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = []
    model = nn.LSTM(256, 256).eval()
    cell = nn.LSTMCell(256, 256).eval()
    for b, one in ((1, False), (32, False), (32, True)):
        x = torch.randn(512, b, 256)
        with torch.no_grad():
            times = interleave({"ours": partial(captured, model, x, one=one), "plain": partial(model, x)}, 5)
        what = "one sample kept" if one else "all kept"
        aim = "≤ 1.1" if one else "≤ 2.2"
        found.append(
            Row(
                f"LSTM, batch {b}, {what}: capture / fused eval forward",
                times["ours"],
                times["plain"],
                times["ours"] / times["plain"],
                aim,
            )
        )
    for b in (1, 32):
        x = torch.randn(512, b, 256)
        times = interleave({"ours": partial(captured, model, x, one=False), "plain": partial(model, x)}, 5)
        ratio = times["ours"] / times["plain"]
        name = f"LSTM, batch {b}, all kept: capture / fused forward, gradients on"
        found.append(Row(name, times["ours"], times["plain"], ratio, "≤ 1.6", "gates read from the kernel's workspace"))
    x = torch.randn(512, 1, 256)

    def loop() -> None:
        state = (torch.zeros(1, 256), torch.zeros(1, 256))
        for row in x:
            state = cell(row, state)

    def step(watch: bool) -> None:
        if watch:
            b = x.shape[1]
            trace = Trace(Subject(model=model), Batch(x.transpose(0, 1), torch.full((b,), 512)), only_looked_at=True)
            probe = FusedRnn()
            probe.attach(model, trace, Emitter(Nothing()))
            model(x)[0].square().sum().backward()
            probe.detach()
            with torch.no_grad():
                probe.finish(trace, Emitter(Nothing()))
                trace.after_the_states()
        else:
            model(x)[0].square().sum().backward()

    with torch.no_grad():
        times = interleave({"ours": lambda: captured(model, x, one=False), "loop": loop}, 5)
    found.append(
        Row(
            "LSTM: capture / loop over LSTMCell (sees no gates)",
            times["ours"],
            times["loop"],
            times["ours"] / times["loop"],
        )
    )
    x = torch.randn(512, 32, 256)
    times = interleave({"ours": lambda: step(True), "plain": lambda: step(False)}, 3)
    found.append(
        Row(
            "LSTM, batch 32: watched training step / plain",
            times["ours"],
            times["plain"],
            times["ours"] / times["plain"],
            "≤ 1.2",
            "one sample kept",
        )
    )
    return found
