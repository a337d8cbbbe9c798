"""The plain (Elman) recurrence h_t = φ(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), φ = tanh or ReLU.

Reference: Elman (1990), Finding structure in time; torch.nn.RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.cells.base import Cell, Recomputed
from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.cells.gate_products import joined_sums
from inspector.engine.cells.gated_algebra import (
    as_given,
    linear_factors,
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


@dataclass(frozen=True, slots=True)
class Activation:
    """φ, its derivative written with the output h = φ(a), and γ = max |φ'|.

    `outside` is φ′ of closed units where φ is piecewise linear with slope 1 elsewhere; None for other functions.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    largest: float
    outside: float | None = None


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, lambda h: 1 - h * h, 1.0),
    "relu": Activation(torch.relu, lambda h: (h > 0).to(h.dtype), 1.0, 0.0),
}


class RnnStep(Cell):
    """A plain recurrent step. Weights: (h, i) and (h, h); biases (h,) or None."""

    family = "rnn"
    trained: ClassVar[Mapping[str, str]] = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias": "bias"}

    def __init__(
        self,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None,
        bias_hh: Tensor | None,
        nonlinearity: str,
        *,
        live: bool = False,
    ) -> None:
        ready = as_given if live else prepare
        w_ih, w_hh = ready(weight_ih), ready(weight_hh)
        assert w_ih is not None and w_hh is not None
        self.w_ih, self.w_hh = w_ih, w_hh
        self.b_ih, self.b_hh = ready(bias_ih), ready(bias_hh)
        self.bias = None if live or self.b_ih is None or self.b_hh is None else self.b_ih + self.b_hh
        self.activation = ACTIVATIONS[nonlinearity]
        self.parts: Mapping[str, slice] = {"h": slice(0, w_hh.shape[0])}
        self.tanh_parts = ("h",) if nonlinearity == "tanh" else ()

    @cached_property
    def w_back(self) -> Tensor:
        """W_hh as the backward pass multiplies with it: (h, h)."""
        return self.w_hh.T.contiguous()

    @cached_property
    def gram(self) -> Tensor:
        """Inner products of the rows of W_hh with themselves, (h, 1, 1)."""
        return row_gram(self.w_hh, 1)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """h' = φ(W_ih x + W_hh h + b)."""
        a = x @ self.w_ih.T + state @ self.w_hh.T
        return self.activation.function(a if self.bias is None else a + self.bias)

    @as_written
    def eager_step(self, x: Tensor, *state: Tensor) -> tuple[Tensor]:
        """(h',) from x and (h,), on the module's own weights."""
        (h,) = state
        h = self.activation.function(F.linear(x, self.w_ih, self.b_ih) + F.linear(h, self.w_hh, self.b_hh))
        return (h,)

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """A plain recurrence has no gates."""
        return {}

    def recompute(
        self, x: Tensor, start: Mapping[str, Tensor], output: Tensor, known: tuple[Tensor, ...] = ()
    ) -> Recomputed:
        """Every step from the h that the module gave before it."""
        states = torch.cat((start["h"][None], output))
        made = self.activation.function(joined_sums(x, states[:-1], self.w_ih, self.w_hh, self.bias))
        return Recomputed(states, (), made)

    def rounding_bound(self, x: Tensor, states: Tensor, known: tuple[Tensor, ...], unit: float) -> Mapping[str, Tensor]:
        """φ′ ≤ 1 times the error of the sum."""
        return {"h": unit * (absolute_sums(x, states[:-1], self.w_ih, self.w_hh, self.bias) + states[1:].abs())}

    def recurrent_weights(self) -> list[RecurrentWeight]:
        """W_hh, with γ."""
        return [RecurrentWeight("hidden", "Wₕₕ", self.w_hh, self.activation.largest)]

    def slope_outside(self) -> float | None:
        """0 for a ReLU."""
        return self.activation.outside

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> RnnBlock:
        """The steps from `previous` to `following`; a plain step has no intermediate values."""
        return RnnBlock(self, x, previous, following)


class RnnBlock(SpreadBlock):
    """J = diag(φ') W_hh, with φ' read off the state itself (B1 of Pascanu et al. 2013)."""

    cell: RnnStep
    recurrent = "activations"

    def __init__(self, cell: RnnStep, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following
        self.gates: Mapping[str, Tensor] = {}

    @cached_property
    def slope(self) -> Tensor:
        """φ' of every step and unit as (t, b, 1, h)."""
        return self.cell.activation.derivative(self.following)[:, :, None]

    def slopes(self) -> Tensor:
        """φ' of every step and unit, (t, b, h)."""
        return self.slope[:, :, 0]

    def jvp(self, v: Tensor) -> Tensor:
        """diag(φ') W_hh v."""
        return scaled_product(self.cell.w_hh, self.slope, v)

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """W_hhᵀ diag(φ') u."""
        return scaled_transpose(self.w_back, self.slope[at], u)

    def jacobian(self) -> Tensor:
        """diag(φ') W_hh."""
        return scaled_matrix(self.cell.w_hh, self.slope)

    def frobenius(self) -> Tensor:
        """√ Σ_h φ'_h² ‖row h of W_hh‖²."""
        return quadratic(self.cell.gram, self.slope).sqrt()

    def input_vjp(self, u: Tensor) -> Tensor:
        """W_ihᵀ diag(φ') u."""
        return scaled_transpose(self.cell.w_ih.T, self.slope, u)

    @property
    def w_back(self) -> Tensor:
        """W_hhᵀ."""
        return self.cell.w_back

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """δ = φ' ⊙ u at the pre-activations; the gradient before the step is W_hhᵀ δ."""
        return {"activations": Spread((slice(None), self.slope[:, 0]))}

    def pushed(self, rows: Tensor, at: int) -> Tensor:
        """diag(φ') W_hh of rows (n, s)."""
        return linear(rows, self.cell.w_hh).mul_(self.slope[at, 0, 0])

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """x for W_ih, the state before for W_hh, 1 for the bias."""
        return linear_factors(self.cell.bias, self.x, self.previous)


@FAMILIES.register("rnn")
class Rnn(TorchFamily):
    """torch.nn.RNN and torch.nn.RNNCell: state h, φ = tanh or ReLU."""

    summary = "nn.RNN, nn.RNNCell: the plain recurrence, tanh or ReLU"
    modules = (nn.RNN,)
    cells = (nn.RNNCell,)
    kernels: ClassVar[Mapping[str, Any]] = {"rnn_tanh": torch.rnn_tanh, "rnn_relu": torch.rnn_relu}
    operations = ("rnn_tanh_cell", "rnn_relu_cell")

    def variant(self, module: nn.Module) -> str:
        """The name of the kernel, which contains the name of φ."""
        return str(module.mode).lower() if isinstance(module, nn.RNN) else f"rnn_{module.nonlinearity}"

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> RnnStep:
        """A step of (w_ih, w_hh, b_ih, b_hh) with the φ that a kernel's name contains."""
        w_ih, w_hh, b_ih, b_hh, *_ = weights
        return RnnStep(w_ih, w_hh, b_ih, b_hh, "relu" if "relu" in variant else "tanh", live=live)
