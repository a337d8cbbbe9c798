"""A model may keep more than parameters from call to call: probes and pauses leave that as it was."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector


class Remembering(nn.Module):
    """Carries its state from batch to batch, counts its calls, and draws from generators of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)
        self.state: Tensor | None = None
        self.sums = {"seen": torch.zeros(2)}
        self.calls, self.sizes, self.cache = 0, list[int](), set[int]()
        self.drawn = torch.Generator().manual_seed(1)
        self.own, self.numpy = random.Random(2), np.random.default_rng(3)

    def forward(self, x: Tensor) -> Tensor:
        hidden, state = self.rnn(x, self.state)
        self.state = state.detach()
        self.calls += 1
        self.sizes.append(len(x))
        self.cache.add(self.calls)
        self.latest = x.mean().item()
        found: Tensor = self.head(hidden)
        self.sums["seen"] += found.detach().sum((0, 1))
        noise = torch.rand((), generator=self.drawn) + self.own.random() + self.numpy.random()
        return found * noise / self.calls + self.sums["seen"]


def trained(path: Path | None, **options: Any) -> str:
    """Bits of a training, and of all that the model remembers."""
    torch.manual_seed(0)
    model = Remembering()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    watcher = None if path is None else inspector.watch(model, optimizer, path, every=1, **options)
    for _ in range(8):
        model(torch.randn(1, 5, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if watcher is not None:
        watcher.close()
        assert watcher.error is None
    told = [*model.state_dict().values(), model.state, model.sums["seen"], model.drawn.get_state()]
    rest = model.calls, model.sizes, model.cache, model.latest, model.own.random(), model.numpy.random()
    return hashlib.sha256(repr(([one.tolist() for one in told if one is not None], rest)).encode()).hexdigest()


@pytest.mark.parametrize(
    "options",
    [{"probe": torch.ones(1, 5, 3), "probe_every": 2}, {"break_on": "iteration 3", "pause_timeout": 0.1}],
    ids=["probe", "pause"],
)
def test_what_a_model_remembers_is_as_without_watching(options: dict[str, Any], tmp_path: Path) -> None:
    assert trained(tmp_path / "run.inspect", **options) == trained(None)
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert len(capture.frames) > 1 and "rnn.l0:h" in capture.channels
        assert not [log.text for log in capture.logs if "failed" in log.text]
