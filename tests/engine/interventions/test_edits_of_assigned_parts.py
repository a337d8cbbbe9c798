"""A state of which a step assigns a part in place is made by no operation that an edit could replace: refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.interventions.runs import plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.records import Edit


class Clockwork(nn.Module):
    """The second half of the units moves at every second step only."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h, found = x.new_zeros(len(x), 4), []
        for t in range(x.shape[1]):
            new = torch.tanh(self.a(x[:, t]) + self.b(h))
            h = h.clone()
            h[:, :2] = new[:, :2]
            if t % 2 == 0:
                h[:, 2:] = new[:, 2:]
            found.append(h)
        return torch.stack(found, 1)


def test_an_edit_of_such_a_state_is_refused_with_the_reason() -> None:
    batch = Batch(torch.randn(1, 8, 3), torch.tensor([8]))
    edit = Edit(place="model", signal="h", unit=1, value=0.5, start=3, stop=5)
    with pytest.raises(InputError, match=r"an assignment to a part of it \(h\[…\] = …\), which no edit replaces"):
        plan_edits(Subject(model=Clockwork()), batch, [edit])
