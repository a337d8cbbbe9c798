"""Gates and pre-activations that are changed in place: the gate shown is what multiplies, and the step is exact."""

from __future__ import annotations

import pytest
import torch
from equations import affine, compare, sigma, tanh
from torch import Tensor, nn

D = torch.float64
X, H, T = 4, 4, 7


class Gated(nn.Module):
    """h_t = z h_{t−1} + (1 − z) n; `gates` computes z and n from a row and the state, changing something in place."""

    names = ("gate/z", "n")

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.n = nn.Linear(X, H), nn.Linear(H, H), nn.Linear(X + H, H)

    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def true_gates(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The same from the equations, one sample."""
        return self.changed(sigma(affine(self.w, x) + affine(self.u, h))), tanh(affine(self.n, x, h))

    def changed(self, z: Tensor) -> Tensor:
        return z

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            z, n = self.gates(row, h)
            h = z * h + (1 - z) * n
            out.append(h)
        return torch.stack(out, 1)

    def equations(self, _: int, x: Tensor, h: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        z, n = self.true_gates(x, h)
        return z * h + (1 - z) * n, dict(zip(self.names, (z, n), strict=True))


class Rescaled(Gated):
    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.sigmoid(self.w(row) + self.u(h))
        z = z.clone()
        z.mul_(0.9).add_(0.1)
        n = torch.tanh(self.n(torch.cat((row, h), -1)))
        return z, n

    def changed(self, z: Tensor) -> Tensor:
        return 0.9 * z + 0.1


class SomeUnitsOpen(Gated):
    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.sigmoid(self.w(row) + self.u(h))
        z = z.clone()
        z[:, :2] = 1.0
        n = torch.tanh(self.n(torch.cat((row, h), -1)))
        return z, n

    def changed(self, z: Tensor) -> Tensor:
        return torch.cat((torch.ones(2, dtype=D), z[2:]))


class Filled(Gated):
    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.sigmoid(self.w(row) + self.u(h))
        z = z.clone()
        z.masked_fill_(torch.tensor([True, False, False, True]), 0.25)
        n = torch.tanh(self.n(torch.cat((row, h), -1)))
        return z, n

    def changed(self, z: Tensor) -> Tensor:
        return torch.where(torch.tensor([True, False, False, True]), torch.full_like(z, 0.25), z)


class Accumulated(Gated):
    """What does not depend on the state is written over: it is computed again with the step."""

    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        a = self.w(row)
        a += self.u(h)
        z = a.sigmoid_()
        n = self.n(torch.cat((row, h), -1)).tanh_()
        return z, n


class AddedToAView(Gated):
    def gates(self, row: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        a = self.w(row).unsqueeze(0)
        a[0].add_(self.u(h))
        z = torch.sigmoid(a[0])
        n = torch.tanh(self.n(torch.cat((row, h), -1)))
        return z, n


class Copied(Gated):
    """The old values of the variable that is written over are no state."""

    names = ("gate/sigmoid", "n")

    def forward(self, x: Tensor) -> Tensor:
        h, out, z = x.new_zeros(len(x), H), [], x.new_zeros(len(x), H)
        for row in x.unbind(1):
            z = z.clone()
            z.copy_(torch.sigmoid(self.w(row) + self.u(h)))
            n = torch.tanh(self.n(torch.cat((row, h), -1)))
            h = z * h + (1 - z) * n
            out.append(h)
        return torch.stack(out, 1)


class SummedInPlace(Gated):
    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            z = torch.sigmoid(self.w(row) + self.u(h))
            n = torch.tanh(self.n(torch.cat((row, h), -1)))
            new = n.mul(1 - z)
            new.add_(z * h)
            h = new
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("kind", Gated.__subclasses__(), ids=lambda kind: kind.__name__)
def test_gates_that_are_changed_in_place(kind: type[Gated], b: int) -> None:
    torch.manual_seed(3)
    model = kind().to(D)
    compare(model, torch.randn(b, T, X, dtype=D), model.equations, shown=lambda h: h)
