"""Where an edit holds a unit of a state, what the cell had made of it is no gate: the edited run shows the state alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Edit

OPTIONS = RunOptions(only=("states", "gates"))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 4)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.a(x) + self.b(h))

    def forward(self, x: Tensor) -> Tensor:
        h, found = x.new_zeros(len(x), 4), []
        for row in x.unbind(1):
            h = self.step(row, h)
            found.append(h)
        return torch.stack(found, 1)


class Listed(Plain):
    def forward(self, x: Tensor) -> Tensor:
        states = [x.new_zeros(len(x), 4)]
        for row in x.unbind(1):
            states.append(torch.tanh(self.a(row) + self.b(states[-1])))
        return torch.stack(states[1:], 1)


class Filled(Plain):
    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(len(x), x.shape[1] + 1, 4)
        for t in range(x.shape[1]):
            states[:, t + 1] = torch.tanh(self.a(x[:, t]) + self.b(states[:, t].clone()))
        return states[:, 1:]


@pytest.mark.parametrize("kind", [Plain, Listed, Filled])
def test_no_gate_appears_at_the_edited_steps(kind: type[Plain]) -> None:
    sink, subject = Kept(), Subject(model=kind())
    batch = Batch(torch.randn(1, 9, 3), torch.tensor([9]))
    plan = plan_edits(subject, batch, [Edit(place="model", signal="h", unit=2, value=0.7, start=4, stop=6)])
    perform_with_edits(subject, batch, sink, plan, OPTIONS)
    assert {name for name in sink.names() if name.startswith("model:")} == {"model:h"}
    edited = sink.array("model:h", 1)
    np.testing.assert_allclose(edited[4:6, 2], 0.7)
    np.testing.assert_array_equal(edited[:4], sink.array("model:h", 0)[:4])
