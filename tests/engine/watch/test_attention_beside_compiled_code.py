"""Attention is read in a process where something was compiled, unless that would make torch.compile compile again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.utils import counters

import inspector
from inspector.capture import Capture

ENTROPY = "modules:attention/entropy"


def double(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def attend(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


class Model(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.inside = nn.Linear(8, 8)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.inside(x)[:, None]
        return F.scaled_dot_product_attention(h, h, h).sum(1) + self.function(h).sum(1)


@pytest.fixture(autouse=True)
def nothing_stays_compiled() -> Any:
    yield
    torch._dynamo.reset()


def watched(path: Path, model: nn.Module, steps: int = 4) -> Capture:
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, path, every=1, cost="full"):  # modules are read in each
        for _ in range(steps):
            model(torch.randn(2, 5, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    found = inspector.open_capture(path)
    assert isinstance(found, Capture)
    return found


def compiled(function: Any) -> Any:
    made = torch.compile(function, backend="aot_eager")
    made(torch.randn(2, 1, 5, 8, requires_grad=True))
    made(torch.randn(2, 1, 5, 8, requires_grad=True))
    return made


def test_something_else_was_compiled(tmp_path: Path) -> None:
    compiled(double)
    with watched(tmp_path / "a.inspect", Model(double)) as capture:
        assert capture.extent(ENTROPY) == (4, 1)
        assert not [log for log in capture.logs if "torch.compile" in log.text]


def test_the_model_calls_something_compiled_without_attention(tmp_path: Path) -> None:
    function = compiled(double)
    before = counters["frames"]["total"]
    with watched(tmp_path / "a.inspect", Model(function)) as capture:
        assert capture.extent(ENTROPY) == (4, 1)
    assert counters["frames"]["total"] == before, "nothing was compiled again"


def test_compiled_attention_is_left_as_it_is_and_that_is_said(tmp_path: Path) -> None:
    function = compiled(attend)
    before = counters["frames"]["total"]
    with watched(tmp_path / "a.inspect", Model(function)) as capture:
        assert ENTROPY not in capture.channels
        assert len([log for log in capture.logs if "torch.compile would compile" in log.text]) == 1
    assert counters["frames"]["total"] == before, "nothing was compiled again"


def test_what_is_compiled_later_ends_it(tmp_path: Path) -> None:
    """The first iterations are read, then something compiles attention beside the training."""
    model = Model(double)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1, cost="full"):
        for n in range(6):
            if n == 3:
                model.function = compiled(attend)
                before = counters["frames"]["total"]
            model(torch.randn(2, 5, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert counters["frames"]["total"] == before
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.extent(ENTROPY) == (3, 1)
