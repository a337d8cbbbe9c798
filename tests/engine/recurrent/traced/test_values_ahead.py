"""Steps that read values which were computed from parameters before the loop say so where items are asked for."""

from __future__ import annotations

import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn import functional as F

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform


class Diagonal(nn.Module):
    """A diagonal state space whose decay is computed in the loop from values that were made before it."""

    def __init__(self) -> None:
        super().__init__()
        self.log_a = nn.Parameter(torch.zeros(4))
        self.step_size, self.read = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        a = -torch.exp(self.log_a)
        dt = F.softplus(self.step_size(x))
        u = self.read(x)
        s = x.new_zeros(len(x), 4)
        out = []
        for t in range(x.shape[1]):
            s = torch.exp(dt[:, t] * a) * s + u[:, t]
            out.append(s)
        return torch.stack(out, 1)


class Free(nn.Module):
    """A loop without any parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.head = nn.Parameter(torch.ones(3)), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        s = self.start.expand(len(x), 3)
        out = []
        for t in range(x.shape[1]):
            s = torch.tanh(0.5 * s + x[:, t])
            out.append(s)
        return self.head(torch.stack(out, 1))


def reasons(model: nn.Module) -> set[str]:
    torch.manual_seed(0)
    subject = Subject(model=model.eval(), kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    kept = Kept()
    perform(subject, Batch(torch.randn(1, 8, 3), torch.tensor([8])), kept, RunOptions(only=("bptt",)))
    return set(kept.reasons())


def test_values_that_were_computed_ahead_are_named_with_their_parameters() -> None:
    (said,) = reasons(Diagonal())
    before, _, after = said.partition(" are computed before the loop from ")
    assert set(before.split(", ")) == {"a", "dt", "u"}
    parameters = set(
        after.partition("; the steps themselves use no parameter")[0].replace(" and others", "").split(", ")
    )
    assert len(parameters) == 4
    assert parameters <= {"log_a", "step_size.weight", "step_size.bias", "read.weight", "read.bias"}


def test_steps_that_have_to_do_with_no_parameter_say_that() -> None:
    assert reasons(Free()) == {"The steps use no parameter of the model, so there is no gradient to itemise."}
