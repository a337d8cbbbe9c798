"""A state that is held at every step is none of the recurrence any more: what is left keeps its own name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Page, Refusal, parse_edit


def records(model: nn.Module, x: Tensor, edit: str) -> list[Any]:
    class Kept:
        def __init__(self) -> None:
            self.all: list[Any] = []

        def write(self, record: Any) -> None:
            self.all.append(record)

    kept, options = Kept(), RunOptions(only=("states", "gates"))
    subject = Subject(model=model, kind="vectors", width=x.shape[-1], loss=lambda o, b: o.square().sum(-1))
    batch = Batch(x, torch.full((x.shape[0],), x.shape[1]))
    perform_with_edits(subject, batch, kept, plan_edits(subject, batch, [parse_edit(edit)], options), options)
    return kept.all


def values(written: list[Any], name: str) -> Tensor | None:
    pages = [one for one in written if isinstance(one, Page) and one.channel == name and one.frame == 1]
    return torch.cat([torch.from_numpy(one.array.copy()) for one in pages]) if pages else None


class Loop(nn.Module):
    """A torch cell in a loop."""

    def __init__(self, cell: nn.LSTMCell) -> None:
        super().__init__()
        self.rnn = cell

    def forward(self, x: Tensor) -> Tensor:
        state: Any = None
        out = []
        for t in range(x.shape[1]):
            state = self.rnn(x[:, t], state)
            out.append(state[0])
        return torch.stack(out, 1)


@pytest.mark.parametrize("held", [0.0, 0.25])
@pytest.mark.parametrize("model, place, end", [
    (lambda: OnlyOutput(nn.LSTM(3, 4, batch_first=True)), "rnn.l0", "_l0"), (lambda: Loop(nn.LSTMCell(3, 4)), "rnn", ""),
], ids=["module", "cell"])  # fmt: skip
def test_c_of_an_lstm_whose_h_is_held_is_not_told_as_h(model: Any, place: str, end: str, held: float) -> None:
    torch.manual_seed(0)
    made = model().double()
    x = torch.randn(1, 7, 3, dtype=torch.float64)
    written = records(made, x, f"{place}:h={held}@0:")
    into, over = (getattr(made.rnn, f"weight_{way}{end}") for way in ("ih", "hh"))
    bias = getattr(made.rnn, f"bias_ih{end}") + getattr(made.rnn, f"bias_hh{end}")
    c, expected = torch.zeros(4, dtype=torch.float64), []
    with torch.no_grad():
        for t in range(7):
            before = torch.full((4,), held if t else 0.0, dtype=torch.float64)
            i, f, g, _ = (into @ x[0, t] + over @ before + bias).chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            expected.append(c)
    found, shown = values(written, f"{place}:c"), values(written, f"{place}:h")
    assert shown is None or bool((shown == held).all()), "never another state under its name"
    assert found is not None
    torch.testing.assert_close(found, torch.stack(expected))
    assert shown is not None or [one for one in written if isinstance(one, Refusal) and one.channel == f"{place}:h"]
