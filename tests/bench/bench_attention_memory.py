"""Memory that a GPT-2-small shape takes beside its weights: a run that keeps every attention, against the plain forward.

Each case is a process of its own, with the settings of the worker; what is measured is how far the process's resident
memory rises above that of the loaded and once used model (Linux: VmHWM, which clear_refs sets back). Numbers are MB.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from bench_attention import HEADS, KEYS, LAYERS, STATISTICS, VOCABULARY, WIDTH, Gpt, captured
from harness import Row
from torch import Tensor, nn

from inspector.engine.model.subject import Batch
from inspector.transport.process import KEEP_MEMORY

STEPS, LONG = 1024, 16_384
CASES = {"statistics": STATISTICS, "maps": ["attention/maps"], "everything": KEYS}


class OneHead(nn.Module):
    """A single head over a long sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.qkv = nn.Embedding(256, 64), nn.Linear(64, 3 * 64)

    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = self.qkv(self.tokens(ids)).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)


def rows() -> list[Row]:
    """Statistics, maps and both at T = 1024, and one head at T = 16,384."""
    layers = 2 * HEADS * STEPS * STEPS * 4 / 2**20
    plain = measured("plain")
    found = []
    for case, name in (
        ("statistics", "all statistics"), ("maps", "all 144 maps"), ("everything", "all 144 maps with all statistics")
    ):  # fmt: skip
        ours = measured(case)
        note = f"MB at most; queries and keys alone: {2 * LAYERS * STEPS * WIDTH * 4 / 2**20:.0f}"
        found.append(
            Row(
                f"memory beside the model: {name}, T={STEPS} / the plain forward", ours, plain, ours / plain,
                f"≤ {plain + layers:.0f} MB", note,
            )
        )  # fmt: skip
    ours, plain = measured("long"), measured("long plain")
    note = f"MB at most; the map alone: {LONG * LONG * 4 / 2**20:.0f} in float32"
    name = f"memory beside the model: map and statistics of one head, T={LONG:,} / the plain forward"
    return [*found, Row(name, ours, plain, ours / plain, "", note)]


def measured(case: str) -> float:
    """MB of one case, by a process of its own."""
    environment = {**os.environ, **KEEP_MEMORY}
    done = subprocess.run(
        [sys.executable, __file__, case], stdout=subprocess.PIPE, text=True, env=environment, check=True
    )
    return float(done.stdout.split()[-1])


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def _case(name: str) -> float:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps, model = (LONG, OneHead()) if name.startswith("long") else (STEPS, Gpt())
    model.eval().requires_grad_(False)
    size = 256 if name.startswith("long") else VOCABULARY
    batches = [Batch(torch.randint(0, size, (1, n)), torch.tensor([n])) for n in (32, steps)]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for number, batch in enumerate(batches):
            if number:
                sum(float(one.sum()) for one in model.parameters())
                gc.collect()
                Path("/proc/self/clear_refs").write_text("5")
                before = _status("VmRSS")
            if name.endswith("plain"):
                model(batch.inputs)
            else:
                captured(model, batch, Path(folder), CASES.get(name, KEYS))
        return _status("VmHWM") - before


if __name__ == "__main__":
    sys.stdout.write(f"{_case(sys.argv[1]):.1f}\n")
