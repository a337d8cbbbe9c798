"""States are written as soon as they are known: before the gradients inside fused modules, which take longer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform
from inspector.engine.recurrent.fused import layers
from inspector.records import Page, Refusal


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.head(self.rnn(x)[0])
        return made


class Written:
    """What a run writes, in its order."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def write(self, record: Any) -> None:
        self.events.append(record)

    def pages(self) -> list[str]:
        return [one.channel if isinstance(one, Page) else one for one in self.events if isinstance(one, Page | str)]


def run(sink: Written, **options: Any) -> None:
    subject = adopt(
        SimpleNamespace(model=Net().eval(), width=3, kind="vectors", loss=lambda out, _: out.square().mean(-1))
    )
    batch = Batch(torch.randn(1, 6, 3), torch.tensor([6]))
    perform(subject, batch, sink, RunOptions(only=("states", "gates", "gradients"), **options))


def test_states_are_written_before_gradients_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, plain = Written(), layers.spread

    def spread(*given: Any) -> tuple[float, float]:
        sink.write("gradients")
        return plain(*given)

    monkeypatch.setattr(layers, "spread", spread)
    run(sink)
    pages = sink.pages()
    at = pages.index("gradients")
    assert {"rnn.l0:h", "rnn.l0:c", "rnn.l1:h", "rnn.l1:c"} <= set(pages[:at])
    assert all(page.startswith("rnn.l") and page[7:] in ("h", "c") for page in pages[:at])
    assert {"rnn.l0:gradient/state_norm", "rnn.l1:gradient/state_norm"} <= set(pages[at:])
    starts = [(one.channel, one.offset) for one in sink.events if isinstance(one, Page)]
    assert len(set(starts)) == len(starts)  # nothing twice


def test_a_fault_in_the_gradients_takes_neither_states_nor_gates_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> tuple[float, float]:
        raise ArithmeticError("no such number")

    monkeypatch.setattr(layers, "spread", broken)
    sink = Written()
    run(sink)
    assert {"rnn.l0:h", "rnn.l1:gate/forget"} <= set(sink.pages())
    refused = [one.reason for one in sink.events if isinstance(one, Refusal)]
    assert any("no such number" in reason for reason in refused)
