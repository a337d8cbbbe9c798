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


class AllAhead(nn.Module):
    """Every weight is applied to the whole input before the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        u = self.read(x)
        s = x.new_zeros(len(x), 4)
        out = []
        for t in range(x.shape[1]):
            s = torch.tanh(0.9 * s + u[:, t])
            out.append(s)
        return torch.stack(out, 1)


def run(model: nn.Module, *keys: str) -> Kept:
    torch.manual_seed(0)
    subject = Subject(model=model.eval(), kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    kept = Kept()
    perform(subject, Batch(torch.randn(1, 8, 3), torch.tensor([8])), kept, RunOptions(only=keys))
    return kept


def test_a_weight_that_is_computed_ahead_has_items_and_what_depends_on_the_input_a_reason() -> None:
    kept = run(Diagonal(), "bptt", "truncation")
    assert {name for name in kept.names() if ":bptt/" in name} == {"model:bptt/a", "model:bptt/a/lag"}
    assert {one.channel for one in kept.refusals()} == {"model:bptt/computed_ahead", "model:truncation/computed_ahead"}
    (said,) = set(kept.reasons())
    before, _, after = said.partition(" are computed before the loop from ")
    assert set(before.split(", ")) == {"dt", "u"}
    parameters, _, why = after.partition("; ")
    assert set(parameters.split(", ")) == {"step_size.weight", "step_size.bias", "read.weight", "read.bias"}
    assert why == "the steps do not use these parameters themselves, so they have no items."


def test_steps_that_read_nothing_but_values_computed_ahead_say_that() -> None:
    (said,) = set(run(AllAhead(), "bptt").reasons())
    before, _, after = said.partition(" is computed before the loop from ")
    assert before == "u"
    assert set(after.partition("; ")[0].split(", ")) == {"read.weight", "read.bias"}
    assert after.endswith("; the steps themselves use no parameter, so there is no gradient to itemise.")


def test_steps_that_have_to_do_with_no_parameter_say_that() -> None:
    reasons = set(run(Free(), "bptt").reasons())
    assert reasons == {"The steps use no parameter of the model, so there is no gradient to itemise."}
