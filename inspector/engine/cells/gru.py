"""The gated recurrent unit as PyTorch computes it: z = 1 keeps the state, the reset gate acts after the product.

r = σ(W_r x + U_r h + b_r), z = σ(W_z x + U_z h + b_z), n = tanh(W_n x + b_in + r ⊙ q), q = U_n h + b_hn,
h' = (1 − z) ⊙ n + z ⊙ h. Reference: Cho et al. (2014), who write 1 − z for z; torch.nn.GRU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.cells.base import Cell, Recomputed
from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import GateInfo, MemoryGate, RecurrentWeight
from inspector.engine.cells.gated_algebra import (
    as_given,
    plain_linear,
    prepare,
    quadratic,
    row_gram,
    scaled_matrix,
    scaled_product,
    scaled_transpose,
)
from inspector.engine.cells.linear import linear
from inspector.engine.cells.rounding import absolute_sums
from inspector.engine.cells.spread_block import Spread, SpreadBlock
from inspector.engine.cells.torch_family import TorchFamily
from inspector.engine.cells.written import as_written

SOURCE = "Cho et al. 2014, as torch.nn.GRU computes it"
GATES = (
    GateInfo("gate/reset", "reset gate r", "r = σ(W_r x + U_r h + b_r)", SOURCE),
    GateInfo("gate/update", "update gate z", "z = σ(W_z x + U_z h + b_z); PyTorch: z = 1 keeps", SOURCE),
    GateInfo("candidate", "candidate n", "n = tanh(W_n x + b_in + r ⊙ (U_n h + b_hn))", SOURCE, (-1, 1)),
)
WEIGHTS = (("reset", "U of gate r"), ("update", "U of gate z"), ("candidate", "U of n"))


class GruStep(Cell):
    """A GRU step. Weights (3h, i) and (3h, h) in the order r, z, n; biases (3h,) or None."""

    family = "gru"
    gate_names = tuple(gate.signal for gate in GATES)
    gate_info = GATES
    memory_gate = MemoryGate("gate/update", True)
    trained: ClassVar[Mapping[str, str]] = {
        "weight_ih": "w_ih",
        "weight_hh": "w_hh",
        "bias_ih": "b_ih",
        "bias_hh": "b_hh",
    }

    def __init__(
        self,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None,
        bias_hh: Tensor | None,
        *,
        live: bool = False,
    ) -> None:
        ready = as_given if live else prepare
        w_ih, w_hh = ready(weight_ih), ready(weight_hh)
        assert w_ih is not None and w_hh is not None
        self.w_ih, self.w_hh = w_ih, w_hh
        self.b_ih, self.b_hh = ready(bias_ih), ready(bias_hh)
        self.hidden = w_hh.shape[1]
        self.parts: Mapping[str, slice] = {"h": slice(0, self.hidden)}

    @cached_property
    def w_back(self) -> Tensor:
        """U as the backward pass multiplies with it: (h, 3h)."""
        return self.w_hh.T.contiguous()

    @cached_property
    def gram(self) -> Tensor:
        """Row inner products of U_r, U_z, U_n and the identity (h, 4, 4)."""
        return row_gram(self.w_hh, 3, diagonal=True)

    @as_written
    def equations(self, from_input: Tensor, from_state: Tensor, h: Tensor) -> Tensor:
        """h' from W x + b_ih and U h + b_hh, (…, 3h) each, and h (…, h)."""
        xr, xz, xn = from_input.chunk(3, -1)
        hr, hz, hn = from_state.chunk(3, -1)
        reset = torch.sigmoid(xr + hr)
        update = torch.sigmoid(xz + hz)
        candidate = torch.tanh(xn + reset * hn)
        h = (1 - update) * candidate + update * h
        return h

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """h' from one step."""
        gx, gh = x @ self.w_ih.T, state @ self.w_hh.T
        gx = gx if self.b_ih is None else gx + self.b_ih
        gh = gh if self.b_hh is None else gh + self.b_hh
        return self.equations(gx, gh, state)

    @as_written
    def eager_step(self, x: Tensor, *state: Tensor) -> tuple[Tensor]:
        """(h',) from x and (h,), on the module's own weights."""
        (h,) = state
        return (self.equations(F.linear(x, self.w_ih, self.b_ih), F.linear(h, self.w_hh, self.b_hh), h),)

    def carry(self, x: Tensor, *state: Tensor) -> tuple[Tensor | None, ...]:
        """z on h."""
        a = F.linear(x, self.w_ih, self.b_ih) + F.linear(state[0], self.w_hh, self.b_hh)
        return (torch.sigmoid(a.chunk(3, -1)[1]),)

    def inside(
        self, x: Tensor, previous: Tensor, product: Callable[..., Tensor] = linear
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(r, z, n, q) of all steps in two matrix products, each (t, b, h).

        The gates of `equations` once more, in place, for speed.
        """
        t, b, _ = x.shape
        h = self.hidden
        gx = product(x.reshape(t * b, -1), self.w_ih, self.b_ih)
        gh = product(previous.reshape(t * b, -1), self.w_hh, self.b_hh)
        rz = gx[:, : 2 * h].add_(gh[:, : 2 * h]).sigmoid_()
        q = gh[:, 2 * h :]
        n = gx[:, 2 * h :].addcmul_(rz[:, :h], q).tanh_()
        return rz[:, :h].view(t, b, h), rz[:, h:].view(t, b, h), n.view(t, b, h), q.view(t, b, h)

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """Reset, update and candidate of all steps."""
        return dict(zip(self.gate_names, self.inside(x, previous, plain_linear), strict=False))

    def recompute(
        self, x: Tensor, start: Mapping[str, Tensor], output: Tensor, known: tuple[Tensor, ...] = ()
    ) -> Recomputed:
        """Every step from the h that the module gave before it."""
        states = torch.cat((start["h"][None], output))
        known = self.inside(x, states[:-1])
        return Recomputed(states, known, torch.lerp(known[2], states[:-1], known[1]))

    def rounding_bound(self, x: Tensor, states: Tensor, known: tuple[Tensor, ...], unit: float) -> Mapping[str, Tensor]:
        """σ′ ≤ 1/4 and tanh′ ≤ 1 times the error of the sums; the reset gate's error reaches n through q."""
        h, before = states[1:], states[:-1]
        _, z, n, q = known or self.inside(x, before)
        e_r, e_z, e_n = (unit * absolute_sums(x, before, self.w_ih, self.w_hh, self.b_ih, self.b_hh)).chunk(3, -1)
        e_n = e_n + q.abs() * e_r / 4 + unit * n.abs()
        return {"h": (n - before).abs() * e_z / 4 + (1 - z) * e_n + unit * (h.abs() + n.abs())}

    def recurrent_weights(self) -> list[RecurrentWeight]:
        """U of each gate."""
        return [RecurrentWeight(*names, part) for names, part in zip(WEIGHTS, self.w_hh.chunk(3), strict=True)]

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> GruBlock:
        """The steps from `previous` to `following`; `known` are r, z, n, q."""
        block = GruBlock(self, x, previous, following)
        if known:
            r, z, n, q = known
            block._values = (r, z, n, q)
        return block


class GruBlock(SpreadBlock):
    """J = diag(z) + diag((h−n) z(1−z)) U_z + diag((1−z)(1−n²)) [diag(r) U_n + diag(q r(1−r)) U_r]."""

    cell: GruStep
    recurrent = "hidden"

    def __init__(self, cell: GruStep, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following

    @cached_property
    def _values(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.cell.inside(self.x, self.previous, plain_linear)

    @property
    def gates(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """Reset, update and candidate, (t, b, h) each."""
        return dict(zip(self.cell.gate_names, self._values, strict=False))

    @cached_property
    def coefficients(self) -> Tensor:
        """Row factors of U_r, U_z, U_n: (t, b, 3, h)."""
        r, z, n, q = self._values
        slope = (1 - z) * (1 - n * n)
        return torch.stack((slope * q * r * (1 - r), (self.previous - n) * z * (1 - z), slope * r), dim=2)

    @cached_property
    def to_input(self) -> Tensor:
        """Row factors of W_r, W_z, W_n: n sees W_n x directly, without the reset gate. (t, b, 3, h)."""
        _, z, n, _ = self._values
        return torch.cat((self.coefficients[:, :, :2], ((1 - z) * (1 - n * n))[:, :, None]), dim=2)

    def jvp(self, v: Tensor) -> Tensor:
        """J v."""
        return scaled_product(self.cell.w_hh, self.coefficients, v) + self._values[1][..., None] * v

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u."""
        return scaled_transpose(self.w_back, self.coefficients[at], u) + self._values[1][at, ..., None] * u

    def jacobian(self) -> Tensor:
        """J, (t, b, h, h)."""
        matrix = scaled_matrix(self.cell.w_hh, self.coefficients)
        matrix.diagonal(dim1=2, dim2=3).add_(self._values[1])
        return matrix

    def frobenius(self) -> Tensor:
        """From the Gram matrices of the rows, the identity counted as one more matrix."""
        a = torch.cat((self.coefficients, self._values[1][:, :, None]), dim=2)
        return quadratic(self.cell.gram, a).sqrt()

    def direct(self) -> Tensor:
        """z, what h' = (1 − z) n + z h copies."""
        return self._values[1]

    def through_frobenius(self) -> Tensor:
        """The same Gram matrices without the identity."""
        return quadratic(self.cell.gram[:, :3, :3], self.coefficients).sqrt()

    def input_vjp(self, u: Tensor) -> Tensor:
        """Through r, z and n to x."""
        return scaled_transpose(self.cell.w_ih.T, self.to_input, u)

    @property
    def w_back(self) -> Tensor:
        """U of all gates."""
        return self.cell.w_back

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """δ of r, z, n as W_ih and as W_hh see it, (n, 3·h) each: the candidate's differs by the reset gate."""
        every = slice(None)
        return {"input": Spread((every, self.to_input[:, 0])), "hidden": Spread((every, self.coefficients[:, 0]))}

    def pushed(self, rows: Tensor, at: int) -> Tensor:
        """J of rows (n, s): one product with U of all gates."""
        gates = linear(rows, self.cell.w_hh).unflatten(1, (3, -1))
        out = rows * self._values[1][at, 0]
        for gate, factor in zip(gates.unbind(1), self.coefficients[at, 0], strict=True):
            out.addcmul_(gate, factor)
        return out

    def close_(self, rows: Tensor, moved: Tensor, at: int) -> None:
        """z ⊙ u, through the state that the step keeps, plus the gradient through the weights."""
        rows.mul_(self._values[1][at, 0]).add_(moved)

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """x and the state before for the weights, 1 for the biases."""
        one = self.x.new_ones(*self.x.shape[:2], 1)
        found = {"weight_ih": ("input", self.x), "weight_hh": ("hidden", self.previous)}
        biases = {"bias_ih": ("input", one), "bias_hh": ("hidden", one)}
        return found if self.cell.b_ih is None else {**found, **biases}


@FAMILIES.register("gru")
class Gru(TorchFamily):
    """torch.nn.GRU and torch.nn.GRUCell: state h."""

    summary = "nn.GRU, nn.GRUCell: reset and update gates"
    modules = (nn.GRU,)
    cells = (nn.GRUCell,)
    kernels: ClassVar[Mapping[str, Any]] = {"gru": torch.gru}
    operations = ("gru_cell",)

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> GruStep:
        """A step of (w_ih, w_hh, b_ih, b_hh)."""
        return GruStep(*weights[:4], live=live)
