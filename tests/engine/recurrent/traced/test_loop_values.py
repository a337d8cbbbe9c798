"""Values that a step is given or makes in unusual ways: constants like a gate, dropout of every kind, detaching, views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from equations import affine, compare, sigma, tanh
from torch import Tensor, nn
from watched import seen

D = torch.float64
X, H, T = 3, 4, 9


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.v = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(H, H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            h = self.advance(t, x[:, t], h)
            out.append(h)
        return torch.stack(out, 1)

    def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
        raise NotImplementedError


def test_a_constant_made_like_a_gate_is_not_shown_in_its_place() -> None:
    class Full(Base):
        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            z = torch.sigmoid(self.v(h) + self.w(x))
            return z * h + (torch.full_like(z, 1.0) - z) * torch.index_fill(z, 0, torch.tensor([0]), 0.5)

    torch.manual_seed(0)
    model, x = Full().to(D), torch.randn(2, T, X, dtype=D)
    (found,), _, _ = seen(model, x, quantities=("gates",))
    z = found.known[found.cell.gate_names.index("gate/z")]
    expected = [sigma(affine(model.v, found.states[t]) + affine(model.w, x[:, t])).detach() for t in range(T)]
    torch.testing.assert_close(z, torch.stack(expected))


@pytest.mark.parametrize("inside", [True, False])
def test_a_matrix_and_its_transpose_are_two(inside: bool) -> None:
    """They look at the same memory, in another way."""

    class Both(Base):
        def forward(self, x: Tensor) -> Tensor:
            self.turned = self.u.weight.T
            return super().forward(x)

        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            return torch.tanh(
                self.w(x) + h @ ((self.u.weight.T if inside else self.turned) if t % 2 else self.u.weight)
            )

    torch.manual_seed(0)
    model = Both().to(D)

    def equations(t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return tanh(affine(model.w, x) + (model.u.weight @ h if t % 2 else h @ model.u.weight)), {}

    found = compare(model, torch.randn(2, T, X, dtype=D), equations, shown=lambda h: h)
    assert not getattr(found.cell, "fed_back", ()), "no one matrix multiplies the state"


def of_three(drop: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda h: drop(h[:, :, None])[..., 0]


DROPS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda h: F.dropout(h, 0.4, True), "by name": lambda h: torch.dropout(h, p=0.4, train=True),
    "off by name": lambda h: torch.dropout(h, p=0.4, train=False), "in place": lambda h: F.dropout(h.clone(), 0.4, True, True),
    "written": lambda h: torch.dropout_(h.clone(), 0.4, True), "alpha": lambda h: F.alpha_dropout(h, 0.4, True),
    "alpha off": lambda h: F.alpha_dropout(h, 0.4), "alpha in place": lambda h: F.alpha_dropout(h.clone(), 0.4, True, True),
    "feature alpha": of_three(lambda h: F.feature_alpha_dropout(h, 0.4, True)),
    "one": of_three(lambda h: F.dropout1d(h, 0.4)), "feature": of_three(lambda h: torch.feature_dropout(h, 0.4, True)),
    "bernoulli": lambda h: h * torch.bernoulli(torch.full_like(h, 0.5)),
    "of the state": lambda h: h * torch.empty_like(h).bernoulli_(torch.sigmoid(h).detach()),
    "noise": lambda h: h + torch.zeros_like(h).normal_(), "where": lambda h: torch.where(torch.rand(h.shape) < 0.5, h, 0 * h),
}  # fmt: skip


@pytest.mark.parametrize("name", DROPS)
def test_what_is_drawn_inside_a_step_is_what_it_was(name: str) -> None:
    """Against autograd through the same run with the same seed."""

    class Dropping(Base):
        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            return torch.tanh(self.w(x) + self.u(DROPS[name](h)) + h)

        def forward(self, x: Tensor) -> Tensor:
            self.states = [x.new_zeros(len(x), H, requires_grad=True)]
            for t in range(x.shape[1]):
                self.states.append(self.advance(t, x[:, t], self.states[-1]))
            return torch.stack(self.states[1:], 1)

    torch.manual_seed(0)
    model, x = Dropping().to(D).train(), torch.randn(2, T, X, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and type(found.cell).__name__ == "ReplayStep"
    assert found.check is not None and found.check.passed
    torch.manual_seed(0)
    model(x)
    own = model.states
    torch.testing.assert_close(found.states, torch.stack(own).detach())
    jacobians = found.block(0, T).jacobian()
    for t in range(T):
        rows = [torch.autograd.grad(own[t + 1][1, k], own[t], retain_graph=True)[0][1] for k in range(H)]
        torch.testing.assert_close(jacobians[t, 1], torch.stack(rows))


CUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda h: h.detach(), "data": lambda h: h.data, "detach_": lambda h: h.detach_(),
    "requires_grad_": lambda h: h.detach().requires_grad_(), "clone": lambda h: h.detach().clone(),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_a_gradient_that_is_cut_hides_neither_the_dynamics_nor_that_it_is_cut(name: str) -> None:
    """Detaching counts as the identity, in the step and on its direct path; what arrives from outside is not told."""

    class Cut(Base):
        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            h = CUTS[name](h) if t % 3 == 2 else h
            z = torch.sigmoid(self.v(h))
            return z * h + (1 - z) * torch.tanh(self.w(x) + self.u(h))

    torch.manual_seed(0)
    model = Cut().to(D)

    def equations(t: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        z = sigma(affine(model.v, h))
        n = tanh(affine(model.w, x) + affine(model.u, h))
        return z * h + (1 - z) * n, {"gate/z": z, "tanh": n}

    found = compare(model, torch.randn(2, T, X, dtype=D), equations)
    assert found.delta is not None and found.arriving is None
    assert found.cut_before == tuple(range(2, T, 3))
    block = found.block(0, T)
    torch.testing.assert_close(block.direct(), block.gates["gate/z"])


DIRECT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "view": lambda h, z: (z.view(-1) * h.view(-1)).view(h.shape),
    "in two shapes": lambda h, z: (h.unsqueeze(1) * z.unsqueeze(1)).squeeze(1),
    "masked": lambda h, z: (z * h).masked_fill(h.detach() > 10, 0.0), "lerp": lambda h, z: torch.lerp(torch.zeros_like(h), h, z),
    "cast": lambda h, z: z * h.to(torch.float64), "where": lambda h, z: torch.where(z > 0, z * h, h),
    "by name": lambda h, z: torch.mul(other=h, input=z), "dropped": lambda h, z: F.dropout(z * h, 0.5, False),
}  # fmt: skip


@pytest.mark.parametrize("name", DIRECT)
def test_the_direct_path_is_one_in_every_spelling(name: str) -> None:
    class Kept(Base):
        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            z = torch.sigmoid(self.v(h))
            return DIRECT[name](h, z) + torch.tanh(self.w(x) + self.u(h))

    torch.manual_seed(0)
    (found,), _, _ = seen(Kept().to(D), torch.randn(2, T, X, dtype=D), quantities=("gates",))
    block = found.block(0, T)
    torch.testing.assert_close(block.direct(), block.gates["gate/z"])


def test_a_denominator_is_no_part_of_the_direct_path() -> None:
    class Divided(Base):
        def advance(self, t: int, x: Tensor, h: Tensor) -> Tensor:
            return h / (2 + h * h) + self.w(x)

    torch.manual_seed(0)
    (found,), _, _ = seen(Divided().to(D), torch.randn(2, T, X, dtype=D))
    torch.testing.assert_close(found.block(0, T).direct(), 1 / (2 + found.states[:-1].square()))
