"""Every state and gate that is shown of layers inside a loop over time can be edited under the name that is shown."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Channel, Edit

D = torch.float64
H, T = 4, 6
OPTIONS = RunOptions(only=("states", "gates"))


class Stacked(nn.Module):
    """Time outside, layers inside; the states in lists, tuples or variables of their own, or changed in between."""

    def __init__(self, kind: type[nn.RNNCellBase], style: str) -> None:
        super().__init__()
        self.cells, self.style = nn.ModuleList([kind(H, H), kind(H, H)]), style
        self.several = kind is nn.LSTMCell

    def forward(self, x: Tensor) -> Tensor:
        zero = x.new_zeros(len(x), H)
        hidden, memory, out = [zero + 0, zero + 0], [zero + 0, zero + 0], []
        both = [(zero + 0, zero + 0) if self.several else zero + 0 for _ in self.cells]
        for row in x.unbind(1):
            for k, cell in enumerate(self.cells):
                if self.style == "tuples":
                    both[k] = cell(row, both[k])
                    row = both[k][0] if self.several else both[k]
                    continue
                if self.several:
                    hidden[k], memory[k] = cell(row, (hidden[k], memory[k]))
                else:
                    hidden[k] = cell(row, hidden[k])
                if self.style == "changed":
                    hidden[k] = 0.9 * hidden[k]
                row = row + hidden[k]
            out.append(row.square().sum(-1))
        return torch.stack(out, 1)


class Variables(Stacked):
    def forward(self, x: Tensor) -> Tensor:
        lower = upper = x.new_zeros(len(x), H)
        below, above, out = lower + 0, lower + 0, []
        for row in x.unbind(1):
            if self.several:
                lower, below = self.cells[0](row, (lower, below))
                upper, above = self.cells[1](lower, (upper, above))
            else:
                lower = self.cells[0](row, lower)
                upper = self.cells[1](lower, upper)
            out.append(upper.square().sum(-1))
        return torch.stack(out, 1)


@pytest.mark.parametrize("style", ["lists", "tuples", "changed", "variables"])
@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_every_shown_name_is_one_that_can_be_edited(kind: type[nn.RNNCellBase], style: str) -> None:
    torch.manual_seed(1)
    model = (Variables if style == "variables" else Stacked)(kind, style).to(D)
    subject = Subject(model, loss=lambda out, batch: out)
    batch = Batch(torch.randn(1, T, H, dtype=D), torch.tensor([T]), ())
    plain = Kept()
    perform(subject, batch, plain, OPTIONS)
    names = [name for name in plain.names() if name.partition(":")[0] not in ("input", "output")]
    assert len([name for name in names if "/" not in name and "candidate" not in name]) >= 2
    values = {name: 0.3 + n / 64 for n, name in enumerate(names)}  # each its own: which is edited is told by it
    state = next(name for name in names if "/" not in name)
    for edited in ({state: 0.3}, values):
        sink = Kept()
        edits = [
            Edit(place=name.partition(":")[0], signal=name.partition(":")[2], unit=1, value=value, start=2, stop=4)
            for name, value in edited.items()
        ]
        perform_with_edits(subject, batch, sink, plan_edits(subject, batch, edits, OPTIONS), OPTIONS)
        for name, value in edited.items():
            before, after = sink.array(name, frame=0), sink.array(name, frame=1)
            assert before.shape == after.shape and (after[2:4, 1] == value).all()
            np.testing.assert_allclose(before[:2], after[:2], rtol=1e-12)


class Fused(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = kind(H, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0].square().sum(-1)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_gates_have_the_same_titles_before_and_after_an_edit(kind: type[nn.RNNBase]) -> None:
    torch.manual_seed(1)
    subject = Subject(Fused(kind).to(D), loss=lambda out, batch: out)
    batch = Batch(torch.randn(1, T, H, dtype=D), torch.tensor([T]), ())
    sink = Kept()
    plan = plan_edits(subject, batch, [Edit(place="rnn.l0", signal="h", start=2)], OPTIONS)
    perform_with_edits(subject, batch, sink, plan, OPTIONS)
    titles: dict[str, list[str]] = {}
    for one in sink.records:
        if isinstance(one, Channel) and one.kind == "gate":
            titles.setdefault(one.name, []).append(one.title)
    assert "rnn.l0:candidate" in titles and any(title[-1].islower() for title, *_ in titles.values())
    for name, said in titles.items():
        assert len(said) >= 2 and len(set(said)) == 1, (name, said)
