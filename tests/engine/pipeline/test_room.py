"""What a run will take is told before it begins, and a run that cannot fit is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import room
from inspector.engine.pipeline.batches import make_batch
from inspector.transport.memory import main_memory

GIB, MIB = 1 << 30, 1 << 20


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(width, width, batch_first=True), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.head(self.rnn(x)[0])
        return made


class ByHand(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(5))


def estimate(model: nn.Module, steps: int, width: int, rows: int = 1) -> room.Needed:
    subject = adopt(SimpleNamespace(model=model.eval(), width=width, kind="vectors"))
    batch = make_batch(subject, torch.zeros(steps, width).numpy(), 0, 0)
    if rows > 1:
        batch = make_batch(subject, [torch.zeros(steps, width).numpy()] * rows, 0, 0)
    return room.needed(subject, batch)


@pytest.mark.parametrize(
    ("make", "steps", "width", "rows", "measured"),
    [
        (Net, 512, 256, 1, 213 * MIB), (Net, 20_000, 64, 1, 312 * MIB), (Net, 100_000, 64, 1, 1.4 * GIB),
        (Net, 200, 64, 32, 131 * MIB), (ByHand, 512, 64, 1, 167 * MIB), (ByHand, 100_000, 64, 1, 5.3 * GIB),
    ],
)  # fmt: skip
def test_runs_took_what_is_told_within_its_spread(
    make: Any, steps: int, width: int, rows: int, measured: float
) -> None:
    found = estimate(make(width), steps, width, rows).in_main
    assert found / room.SPREAD <= measured <= found * room.SPREAD


def sentence(free: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(room, "main_memory", lambda: free)
    subject = adopt(SimpleNamespace(model=Net(64).eval(), width=64, kind="vectors"))
    return room.told(subject, make_batch(subject, torch.zeros(20_000, 64).numpy(), 0, 0))


def test_nothing_is_said_where_there_is_plenty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentence(64 * GIB, monkeypatch) == ""


def test_a_notable_share_is_told_with_its_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    said = sentence(GIB, monkeypatch)
    assert said.startswith("This run will take about ") and " of 1 GiB that are free of main memory." in said
    assert " MiB to " in said


def test_what_cannot_fit_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "main_memory", lambda: 16 * MIB)
    subject = SimpleNamespace(model=Net(64).eval(), width=64, kind="vectors")
    with pytest.raises(InputError, match=r"would take about .* at least, and 16 MiB are free; run fewer"):
        inspector.run(subject, torch.zeros(300, 64).numpy(), out=tmp_path / "a.inspect")
    assert not (tmp_path / "a.inspect").exists()


def test_it_is_a_message_of_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "FEWEST", 0)
    monkeypatch.setattr(room, "NOTABLE", 0.0)
    subject = SimpleNamespace(model=Net(4).eval(), width=4, kind="vectors")
    capture = inspector.run(subject, torch.zeros(6, 4).numpy(), out=tmp_path / "a.inspect", only=["states"])
    assert any(log.text.startswith("This run will take about ") for log in capture.logs)


def test_a_family_that_raises_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise KeyError("no such weight")

    monkeypatch.setattr(room, "needed", broken)
    subject = SimpleNamespace(model=Net(4).eval(), width=4, kind="vectors")
    assert "rnn.l0:h" in inspector.run(subject, torch.zeros(6, 4).numpy(), out=tmp_path / "a.inspect").channels


def test_the_machine_tells_its_memory() -> None:
    free = main_memory()
    assert free is None or free > 64 * MIB
