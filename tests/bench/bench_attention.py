"""Every attention map of a GPT-2-small shape in the capture file, against the plain forward of the same model.

One round of ours is: open a capture, run the model under the probe, write every map and statistic, close the
capture. One round of the other is the forward alone. Rounds are interleaved; the ratio is the median of rounds. Both run
in a process of their own with the settings of the worker, in which every model runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import Row, interleave
from torch import Tensor, nn

from inspector.capture import Writer
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.attention import AttentionProbe
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import Frame, RunStart, RunStop
from inspector.transport.process import KEEP_MEMORY

WIDTH, HEADS, LAYERS, VOCABULARY = 768, 12, 12, 50_257
KEYS = sorted(
    (key for key in QUANTITIES if key.startswith("attention/") and QUANTITIES[key].default),
    key=lambda key: QUANTITIES[key].order,
)  # fmt: skip
"""What every run computes of attention; what is computed on request calls the model again."""
STATISTICS = [key for key in KEYS if key != "attention/maps"]


class Block(nn.Module):
    """One pre-norm block with scaled_dot_product_attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        nn.init.normal_(self.qkv.weight, std=0.08)  # logits of the size that trained models have

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2 small with random weights, its output tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(1024, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.blocks(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        return self.norm(x) @ self.tokens.weight.T


def captured(model: nn.Module, batch: Batch, folder: Path, keys: list[str]) -> None:
    """The whole of it: from an empty folder to a closed capture with every map of every head."""
    path = folder / "bench.inspect"
    with Writer(path, RunStart(run="bench", title="attention"), overwrite=True) as writer:
        writer.write(Frame(index=0))
        trace = Trace(Subject(model), batch, chosen=frozenset(keys))
        emit, probe = Emitter(writer), AttentionProbe()
        probe.attach(model, trace, emit)
        try:
            with torch.no_grad():
                trace.output = model(batch.inputs)
        finally:
            probe.detach()
        probe.finish(trace, emit)
        for key in keys:
            QUANTITIES[key].run(trace, emit)
        writer.write(RunStop("done"))


def rows() -> list[Row]:
    """Capture with every map against the plain forward, at T = 512 and T = 1024, in the worker's settings."""
    done = subprocess.run(
        [sys.executable, __file__], stdout=subprocess.PIPE, text=True, env={**os.environ, **KEEP_MEMORY}, check=True
    )
    return [Row(*row) for row in json.loads(done.stdout)]


def measured() -> list[Row]:
    """The rows, in this process."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # as the worker does on two cores: the other one writes
    model = Gpt().eval().requires_grad_(False)
    alone, everything = ["attention/maps"], KEYS
    return [
        _row(model, 512, STATISTICS, "≤ 1.12"), _row(model, 1024, STATISTICS, "≤ 1.17"),
        _row(model, 512, alone, "≤ 1.15"), _row(model, 1024, alone, "≤ 1.12"),
        _row(model, 512, everything), _row(model, 1024, everything),
    ]  # fmt: skip


def _row(model: nn.Module, steps: int, keys: list[str], aim: str = "") -> Row:
    batch = Batch(torch.randint(0, VOCABULARY, (1, steps)), torch.tensor([steps]))
    folder = Path(tempfile.mkdtemp(prefix="bench-attention-"))

    def plain() -> None:
        with torch.no_grad():
            model(batch.inputs)

    functions: dict[str, Callable[[], object]] = {"ours": lambda: captured(model, batch, folder, keys), "plain": plain}
    try:
        times = interleave(functions, 9 if steps <= 512 else 7)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size = 2 * LAYERS * HEADS * steps * steps / 1e6
    return Row(
        name=_name(keys, steps),
        ours=times["ours"], other=times["plain"], ratio=times["ours"] / times["plain"],
        aim=aim, note="against the plain sdpa forward" + f"; {size:.0f} MB of float16 written" * (keys != STATISTICS),
    )  # fmt: skip


def _name(keys: list[str], steps: int) -> str:
    if keys == STATISTICS:
        return f"all statistics of {LAYERS * HEADS} heads, T={steps}"
    return f"all {LAYERS * HEADS} attention maps{' with all statistics' * (keys == KEYS)}, T={steps}"


if __name__ == "__main__":
    json.dump([astuple(row) for row in measured()], sys.stdout)
