"""Everything that is computed by default of one layer, against forward and backward; in CPU time, run by run."""

from __future__ import annotations

import importlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from bench_handwritten import Lstm as ByHand
from harness import Row
from torch import Tensor, nn

import inspector
from inspector.engine.cells.linear import linear
from inspector.engine.model.subject import Subject

analysis = importlib.import_module("inspector.engine.pipeline.analyse")
WALK = "jacobian/lag and paths/lag"
"""Two quantities of one walk over the steps: the first that is asked for does it for both."""
BEFORE = {
    "jacobian/spectral_radius": "37 s", "lyapunov": "2.4 s", "jacobian/eigenvalues": "2.0 s",
    "jacobian/singular_values": "1.3 s", WALK: "2.3 s",
    "jacobian/spectral_norm": "0.8 s", "gradient/lag_map": "7.1 s",
}  # fmt: skip
"""Seconds of these quantities at T = 512, H = 256 before they were made cheaper, on the same machine."""


class Net(nn.Module):
    """An LSTM whose every step has a loss; torch's own, or the same written by hand."""

    def __init__(self, hidden: int, *, by_hand: bool = False) -> None:
        super().__init__()
        self.rnn = ByHand(hidden) if by_hand else nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        found = self.rnn(x)
        out: Tensor = self.head(found if isinstance(found, Tensor) else found[0])
        return out


def seconds(function: Callable[[], object]) -> float:
    """CPU time of one call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def measured(steps: int, hidden: int, rounds: int, *, by_hand: bool = False) -> tuple[float, float, dict[str, float]]:
    """Medians of CPU seconds: (forward and backward, a run with the default quantities, {quantity: its part})."""
    torch.manual_seed(0)
    net, x = Net(hidden, by_hand=by_hand), torch.randn(steps, hidden)
    subject = Subject(model=net, loss=lambda out, _batch: out.square().mean(-1))
    parts: dict[str, list[float]] = {}
    plain = analysis._compute

    def timed(request: str, *more: object) -> None:
        parts.setdefault(request, []).append(seconds(lambda: plain(request, *more)))

    def train() -> None:
        net.zero_grad()
        net(x[None]).square().mean().backward()

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            inspector.run(subject, x, out=Path(folder) / "run.inspect")

    analysis._compute = timed
    try:
        once, whole = [], []
        for _ in range(rounds):
            once.append(min(seconds(train) for _ in range(3)))
            whole.append(seconds(run))
    finally:
        analysis._compute = plain
    found = {key: statistics.median(values) for key, values in parts.items()}
    found[WALK] = found["jacobian/lag"] + found.get("paths/lag", 0.0)
    return statistics.median(once), statistics.median(whole), found


def counted(steps: int, hidden: int) -> dict[str, float]:
    """Multiplications of the products that a method cannot do without, for an LSTM's state (h, c)."""
    s, weights = 2.0 * hidden, 4.0 * hidden**2
    return {
        "jacobian/spectral_radius": steps * (32 * weights + 2 * 32**2 * s),
        "jacobian/spectral_norm": steps * 2 * 20 * weights,
        "gradient/lag_map": steps**2 / 2 * hidden * s,
        "jacobian/singular_values": 11 * 4 / 3 * s**3,
        "jacobian/eigenvalues": 3 * 12 * s**3,
        "lyapunov": steps * s**2 / 2 * (37 + 3 * 8),
        WALK: 14 * 8 * steps / 2 * weights,
    }


def rate() -> float:
    """Multiplications a second of the fastest product of float32 there is."""
    x, weight = torch.randn(512, 512), torch.randn(1024, 512)
    return 512 * 512 * 1024 / min(seconds(lambda: linear(x, weight)) for _ in range(20))


def small(what: str, *, by_hand: bool) -> list[Row]:
    """T = 512, H = 64: calls cost as much as arithmetic. What LAPACK takes is the floor of the numbers it computes."""
    once, whole, parts = measured(512, 64, 3, by_hand=by_hand)
    lapack = (parts["jacobian/eigenvalues"] + parts["jacobian/singular_values"]) / once
    note = f"LAPACK's eigenvalues of 171 and singular values of 512 matrices of 128 × 128 alone: {lapack:.0f}"
    name = f"default quantities, {what}, T=512, H=64"
    return [
        Row(f"{name}: a whole run / forward and backward", whole, once, whole / once, "", note),
        Row(f"{name}: {WALK} / forward and backward", parts[WALK], once, parts[WALK] / once),
    ]


def rows() -> list[Row]:
    """T = 512, H = 256 and 64; T = 100,000, H = 64; float32, one thread."""
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    with torch.no_grad():
        speed = rate()
    measured(16, 16, 1)  # imports
    once, whole, parts = measured(512, 256, 3)
    floors = {key: count / speed / once for key, count in counted(512, 256).items()}
    name = "default quantities, T=512, H=256"
    found = [
        Row(
            f"{name}: a whole run / forward and backward", whole, once, whole / once, "≤ 150",
            f"was 1,500 (46 s) without a loss, 2,100 (60 s) with one a step; products alone at the speed of the fastest: {sum(floors.values()):.0f}",
        )
    ]  # fmt: skip
    for key in sorted(floors, key=lambda key: -parts[key]):
        note = f"was {BEFORE[key]}; its products alone: {floors[key]:.1f}"
        found.append(Row(f"{name}: {key} / forward and backward", parts[key], once, parts[key] / once, "≤ 50", note))
    found += small("nn.LSTM", by_hand=False) + small("LSTM written by hand", by_hand=True)
    once, whole, _ = measured(100_000, 64, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    note = f"was 128 to 186 s and 3 GB; {memory:.1f} GB at most"
    found.append(
        Row("default quantities, T=100,000, H=64: a whole run / forward and backward", whole, once, whole / once, "", note)
    )  # fmt: skip
    return found
