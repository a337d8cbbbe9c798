"""First and last iterations that do less than the others: every state is the model's own, and so is every Jacobian."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from watched import seen

D = torch.float64


class Base(nn.Module):
    """tanh of a linear map; `first` and `others` are what the states are before the map."""

    factor = 0.9

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(7, 4)
        self.states: list[Tensor] = []

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        self.states.append(torch.tanh(self.w(torch.cat((x, h), -1))))
        return self.states[-1]


class Scaled(Base):
    def forward(self, x: Tensor) -> Tensor:
        out: list[Tensor] = []
        for row in x.unbind(1):
            out.append(self.advance(row, out[-1] * 0.9 if out else row.new_zeros(len(row), 4)))
        return torch.stack(out, 1)


class Copied(Base):
    factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        out: list[Tensor] = []
        for row in x.unbind(1):
            out.append(self.advance(row, out[-1].clone() if out else row.new_zeros(len(row), 4)))
        return torch.stack(out, 1)


class Until(Base):
    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), 4), []
        for t, row in enumerate(x.unbind(1)):
            h = self.advance(row, h)
            out.append(h)
            if t < x.shape[1] - 1:
                h = h * 0.9
        return torch.stack(out, 1)


class Peeled(Base):
    """The first state is made by another call of the same function."""

    factor = 1.0

    def forward(self, x: Tensor) -> Tensor:
        h, out = torch.zeros(()), []
        for t, row in enumerate(x.unbind(1)):
            h = self.advance(row, row.new_zeros(len(row), 4)) if t == 0 else self.advance(row, h)
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("kind", [Scaled, Copied, Until])
@pytest.mark.parametrize("batch", [1, 2])
def test_every_state_is_the_models_own(kind: Any, batch: int) -> None:
    torch.manual_seed(0)
    model = kind().to(D)
    x = torch.randn(batch, 9, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    own = model.states[:9]
    assert not kept.refusals() and found.check is not None and found.check.passed and found.steps == 9
    torch.testing.assert_close(found.states[1:], torch.stack(own).detach())
    weight = model.w.weight[:, 3:].detach()
    for t in range(1, 9):
        jacobian = (1 - own[t][0].detach().square())[:, None] * weight * kind.factor
        back = found.block(t, t + 1).vjp(torch.eye(4, dtype=D).expand(1, batch, -1, -1))[0, 0]
        torch.testing.assert_close(back.mT, jacobian)


@pytest.mark.parametrize("kind", [Scaled, Until])
def test_the_gradient_of_every_state_is_autograds(kind: Any) -> None:
    torch.manual_seed(0)
    model = kind().to(D)
    x = torch.randn(2, 9, 3, dtype=D)
    (found,), _, _ = seen(model, x)
    model.states.clear()
    expected = torch.autograd.grad(model(x).square().sum(), model.states)
    assert found.delta is not None and found.arriving is not None
    torch.testing.assert_close(found.delta, torch.stack(expected))
    torch.testing.assert_close(found.arriving, 2 * torch.stack(model.states).detach())


def test_a_list_that_begins_with_two_tensors_has_its_second_path() -> None:
    """The first iterations read what is no state yet; later ones read a state there, and its path counts."""

    class Skipping(Base):
        def forward(self, x: Tensor) -> Tensor:
            out = [x.new_zeros(len(x), 4), x.new_zeros(len(x), 4)]
            for row in x.unbind(1):
                out.append(self.advance(row, out[-1]) + 0.5 * out[-2])
            return torch.stack(out[2:], 1)

    (found,), _, _ = seen(Skipping().to(D), torch.randn(2, 9, 3, dtype=D))
    older = found.cell.parts["h[t-1]"]
    for t in (3, 8):
        back = found.block(t, t + 1).vjp(torch.eye(8, dtype=D)[:, :4].expand(1, 2, -1, -1))[0, 0]
        torch.testing.assert_close(back[older], 0.5 * torch.eye(4, dtype=D))


def test_a_first_step_of_its_own_with_the_operations_of_all_others_is_one_of_them() -> None:
    model = Peeled().to(D)
    (found,), kept, _ = seen(model, torch.randn(2, 9, 3, dtype=D))
    assert not kept.refusals() and found.check is not None and found.check.passed
    torch.testing.assert_close(found.states[1:], torch.stack(model.states[:9]).detach())
    assert not found.states[0].any()


def test_a_last_iteration_that_cannot_be_divided_anew_is_left_out() -> None:
    """One more operation at a step in the middle: the ends of the iterations differ."""

    class Uneven(Base):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), 4), []
            for t, row in enumerate(x.unbind(1)):
                h = self.advance(row, h)
                out.append(h)
                if t < x.shape[1] - 1:
                    h = h * 0.9 if t != 4 else h * 0.9 + 0.1
            return torch.stack(out, 1)

    model = Uneven().to(D)
    (found,), kept, _ = seen(model, torch.randn(2, 9, 3, dtype=D))
    assert not kept.refusals() and found.check is not None and found.check.passed
    real = torch.stack(model.states[: found.steps]).detach() * 0.9
    real[4] += 0.1
    torch.testing.assert_close(found.states[1:], real)
    assert found.steps == 8


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_branch_at_the_head_of_the_loop_is_no_other_iteration(every: int) -> None:
    """What comes back at every iteration stands in the middle; the bytecode says where iterations begin."""

    class Head(Base):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), 4), []
            for t in range(x.shape[1]):
                if t % every == 0:  # noqa: SIM108 - two statements, as people write them
                    a = torch.sin(x[:, t])
                else:
                    a = torch.cos(x[:, t])
                h = self.advance(a, h)
                out.append(h)
            return torch.stack(out, 1)

    model = Head().to(D)
    (found,), kept, _ = seen(model, torch.randn(2, 24, 3, dtype=D))
    assert not kept.refusals() and found.check is not None and found.check.passed
    torch.testing.assert_close(found.states[1:], torch.stack(model.states[:24]).detach())
