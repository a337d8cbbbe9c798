"""Recurrent cells whose new state is made in many styles: by a tanh, and by something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IN, H, T = 3, 4, 12
Squash = Callable[["Cell", Tensor, Tensor], Tensor]
"""The new state from the pre-activation and the old state."""


class Cell(nn.Module):
    """h' = f(W x + U h + b, h), each f in a style of its own."""

    def __init__(self, squash: Squash, *, grad: bool = True) -> None:
        super().__init__()
        self.squash, self.grad = squash, grad
        self.w, self.u = nn.Linear(IN, H), nn.Linear(H, H)
        self.z = nn.Linear(IN, H)
        self.tanh, self.norm, self.drop = nn.Tanh(), nn.LayerNorm(H), nn.Dropout(0.3)
        self.scale = nn.Parameter(torch.ones(H))
        self.inner = nn.RNNCell(H, H)
        self.gru = nn.GRUCell(H, H)
        self.mask = torch.zeros(1, dtype=torch.bool)
        self.x: Tensor
        self.t = 0

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        with torch.set_grad_enabled(self.grad):
            for self.t in range(x.shape[1]):
                self.x = x[:, self.t]
                a = self.w(self.x) + self.u(h)
                h = self.squash(self, a, h)
                out.append(h)
            return torch.stack(out, 1)


def in_place(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    a.tanh_()
    return a


def in_place_chain(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.sigmoid(2 * a).mul_(2).sub_(1)


def buffered(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = a.new_empty(a.shape)
    new[:, :2] = torch.tanh(a[:, :2])
    new[:, 2:] = a[:, 2:].tanh()
    return new


def exponentials(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return (torch.exp(a) - torch.exp(-a)) / (torch.exp(a) + torch.exp(-a))


def doubled_exponential(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return 1 - 2 / (torch.exp(2 * a) + 1)


def split_and_joined(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    one, two = torch.tanh(a).chunk(2, -1)
    return torch.cat((one, two), -1)


def stacked(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.stack([torch.tanh(one) for one in a.unbind(-1)], -1)


def turned(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a.T).T.contiguous().flip(-1).flip(-1)


def half_done(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return a.view(-1, 2, 2).tanh().reshape(len(a), -1).clone()


def masked_to_itself(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.where(torch.ones_like(a, dtype=torch.bool), torch.tanh(a), h)


def masked_by_product(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    m = a.new_ones(len(a), 1)
    return m * torch.tanh(a) + (1 - m) * h


def written_into_a_copy(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = h.clone()
    new.copy_(torch.tanh(a))
    return new


def out_argument(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = torch.empty_like(a)
    torch.tanh(a, out=new)
    return new


def overload(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    out: Tensor = torch.ops.aten.tanh.default(a)
    return out


TANH: dict[str, tuple[Squash, bool]] = {
    "torch.tanh": (lambda c, a, h: torch.tanh(a), True),
    "F.tanh": (lambda c, a, h: F.tanh(a), True),
    "method": (lambda c, a, h: a.tanh(), True),
    "module": (lambda c, a, h: c.tanh(a), True),
    "torch.ops": (lambda c, a, h: torch.ops.aten.tanh(a), True),
    "overload": (overload, True),
    "two sigmoids": (lambda c, a, h: 2 * torch.sigmoid(2 * a) - 1, True),
    "sigmoid, turned": (lambda c, a, h: 1 - 2 * torch.sigmoid(-2 * a), True),
    "exponentials": (exponentials, True),
    "doubled exponential": (doubled_exponential, True),
    "expm1": (lambda c, a, h: torch.expm1(2 * a) / (torch.expm1(2 * a) + 2), True),
    "in place": (in_place, False),
    "sigmoid in place": (in_place_chain, True),
    "buffer": (buffered, True),
    "split and joined": (split_and_joined, True),
    "stacked": (stacked, True),
    "turned": (turned, True),
    "another shape": (half_done, True),
    "detached": (lambda c, a, h: torch.tanh(a).detach(), True),
    "cast": (lambda c, a, h: torch.tanh(a).float().to(a.dtype), True),
    "dropout that is off": (lambda c, a, h: F.dropout(torch.tanh(a), 0.5, training=False), True),
    "clamped beyond": (lambda c, a, h: torch.tanh(a).clamp(-1, 1), True),
    "times one": (lambda c, a, h: torch.tanh(a) * 1.0, True),
    "norm before": (lambda c, a, h: torch.tanh(2 * c.norm(a)), True),
    "mask of ones": (masked_to_itself, True),
    "mask by product": (masked_by_product, True),
    "copied": (written_into_a_copy, True),
    "out": (out_argument, False),
    "torch's cell": (lambda c, a, h: c.inner(a, h), True),
}


def overwritten_in_part(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = torch.tanh(a)
    new[:, 0] = a[:, 0]
    return new


def moved_through_a_view(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = torch.tanh(a)
    new.view(-1).mul_(0.5)
    return new


def moved_through_strides(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = torch.tanh(a)
    new.as_strided((2,), (1,)).add_(3.0)
    return new * 1


def zoned_out(_: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.where(torch.arange(H) < 2, torch.tanh(a), h)


def masked_late(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    m = a.new_full((len(a), 1), float(cell.t != 7))
    return m * torch.tanh(a) + (1 - m) * h


def at_most_steps(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a) if cell.t != 5 else torch.relu(a)


def fading(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a) * (1.0 if cell.t < 7 else 0.5)


def fading_sigmoid(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return (2.0 if cell.t < 7 else 1.5) * torch.sigmoid(a) - 1


def tighter(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a).clamp(-1.0 if cell.t < 7 else -0.5, 1.0)


def fewer_units(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    new = h.clone()
    new[:, : H if cell.t < 7 else 2] = torch.tanh(a)[:, : H if cell.t < 7 else 2]
    return new


def mask_written_over(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    cell.mask.fill_(cell.t == 7)
    return torch.where(cell.mask, h, torch.tanh(a))


def held(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(a) if cell.t % 2 == 0 else h


def nearly(a: Tensor) -> Tensor:
    return torch.tanh(a) * 0.9


with warnings.catch_warnings(action="ignore"):  # deprecated, and still used
    scripted = torch.jit.script(nearly)


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        return torch.tanh(a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


OTHERS: dict[str, tuple[Squash, str]] = {
    "relu": (lambda c, a, h: torch.relu(a), "relu"),
    "hardtanh": (lambda c, a, h: F.hardtanh(a), "hardtanh"),
    "clamp": (lambda c, a, h: a.clamp(-1, 1), "clamp"),
    "clamped tanh": (lambda c, a, h: torch.tanh(a).clamp(-0.98, 0.98), "clamp"),
    "softsign": (lambda c, a, h: F.softsign(a), "softsign"),
    "sigmoid": (lambda c, a, h: torch.sigmoid(a), "sigmoid"),
    "two sigmoids, other": (lambda c, a, h: 1.9 * torch.sigmoid(2 * a) - 0.95, "a sum"),
    "erf": (lambda c, a, h: torch.erf(a), "erf"),
    "sine": (lambda c, a, h: torch.sin(a), "sin"),
    "scaled": (lambda c, a, h: 1.7159 * torch.tanh(2 * a / 3), "a product"),
    "scaled by a parameter": (lambda c, a, h: c.scale * torch.tanh(a), "a product"),
    "residual": (lambda c, a, h: h + torch.tanh(a), "a sum"),
    "leaky": (lambda c, a, h: 0.5 * h + 0.5 * torch.tanh(a), "a sum"),
    "gated": (lambda c, a, h: (1 - torch.sigmoid(c.z(c.x))) * torch.tanh(a) + torch.sigmoid(c.z(c.x)) * h, "a sum"),
    "lerp": (lambda c, a, h: torch.lerp(h, torch.tanh(a), torch.sigmoid(c.z(c.x))), "a mix"),
    "output gate": (lambda c, a, h: torch.sigmoid(c.z(c.x)) * torch.tanh(a + h), "a product"),
    "norm behind": (lambda c, a, h: c.norm(torch.tanh(a)), "layer_norm"),
    "dropout that is on": (lambda c, a, h: F.dropout(torch.tanh(a), 0.3, training=True), "dropout"),
    "one half": (lambda c, a, h: torch.cat((torch.tanh(a[:, :2]), a[:, 2:]), -1), "a part of it"),
    "one entry": (overwritten_in_part, "a part of it"),
    "a view": (moved_through_a_view, "not a tanh"),
    "strides": (moved_through_strides, "not a tanh"),
    "units kept": (zoned_out, "a part of it"),
    "a step kept": (masked_late, "step 7"),
    "another step": (at_most_steps, "step 5"),
    "scaled late": (fading, "step 7"),
    "two sigmoids, late": (fading_sigmoid, "step 7"),
    "clamped late": (tighter, "step 7"),
    "units kept late": (fewer_units, "step 7"),
    "a mask that is written over": (mask_written_over, ""),
    "every other step": (held, "step 1 leaves it as it was"),
    "scripted": (lambda c, a, h: scripted(a), ""),
    "a function of its own": (lambda c, a, h: Own.apply(a), ""),
    "torch's GRU": (lambda c, a, h: c.gru(a, h), ""),
}
