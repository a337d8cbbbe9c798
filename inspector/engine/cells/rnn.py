"""The plain (Elman) recurrence h_t = φ(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), φ = tanh or ReLU.

Reference: Elman (1990), Finding structure in time; torch.nn.RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gated_algebra import (
    linear_factors,
    pre_activations,
    prepare,
    quadratic,
    row_gram,
    scaled_matrix,
    scaled_product,
    scaled_transpose,
)
from inspector.engine.cells.spread_block import Spread, SpreadBlock


@dataclass(frozen=True, slots=True)
class Activation:
    """φ, its derivative written with the output h = φ(a), and γ = max |φ'|."""

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    largest: float


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, lambda h: 1 - h * h, 1.0),
    "relu": Activation(torch.relu, lambda h: (h > 0).to(h.dtype), 1.0),
    "sigmoid": Activation(torch.sigmoid, lambda h: h * (1 - h), 0.25),
}


class RnnStep(Cell):
    """A plain recurrent step. Weights: (h, i) and (h, h); biases (h,) or None."""

    family = "rnn"
    gate_names: tuple[str, ...] = ()
    trained: ClassVar[Mapping[str, str]] = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias": "bias"}

    def __init__(
        self, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None, bias_hh: Tensor | None, nonlinearity: str
    ) -> None:
        w_ih, w_hh = prepare(weight_ih), prepare(weight_hh)
        assert w_ih is not None and w_hh is not None
        self.w_ih, self.w_hh = w_ih, w_hh
        b_ih, b_hh = prepare(bias_ih), prepare(bias_hh)
        self.bias = None if b_ih is None or b_hh is None else b_ih + b_hh
        self.nonlinearity = nonlinearity
        self.activation = ACTIVATIONS[nonlinearity]
        self.parts: Mapping[str, slice] = {"h": slice(0, w_hh.shape[0])}

    @cached_property
    def w_back(self) -> Tensor:
        """W_hh as the way back multiplies with it: (h, h)."""
        return self.w_hh.T.contiguous()

    @cached_property
    def gram(self) -> Tensor:
        """Inner products of the rows of W_hh with themselves, (h, 1, 1)."""
        return row_gram(self.w_hh, 1)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """h' = φ(W_ih x + W_hh h + b)."""
        a = x @ self.w_ih.T + state @ self.w_hh.T
        return self.activation.function(a if self.bias is None else a + self.bias)

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """A plain recurrence has no gates."""
        return {}

    def outputs(self, x: Tensor, previous: Tensor) -> Tensor:
        """The states that the recomputed pre-activations give, (t, b, h): what the check compares."""
        return self.activation.function(pre_activations(x, previous, self.w_ih, self.w_hh, self.bias))

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> RnnBlock:
        """The steps from `previous` to `following`; there is nothing between them to be known."""
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

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """x for W_ih, the state before for W_hh, 1 for the bias."""
        return linear_factors(self.cell.bias, self.x, self.previous)
