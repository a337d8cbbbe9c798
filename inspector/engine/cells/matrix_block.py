"""Blocks whose Jacobians are built: every product with them is one with the matrices."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock


class MatrixBlock(StepBlock):
    """A block that knows its step Jacobians as matrices."""

    @property
    @abstractmethod
    def matrices(self) -> Tensor:
        """J, (t, b, s, s), built once."""

    def jvp(self, v: Tensor) -> Tensor:
        """J v."""
        product: Tensor = self.matrices @ v
        return product

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u."""
        product: Tensor = self.matrices[at].transpose(-1, -2) @ u
        return product

    def back_(self, rows: Tensor, at: int) -> None:
        """Jᵀ of one step on the rows."""
        rows.copy_(rows @ self.matrices[at, 0])

    def jacobian(self) -> Tensor:
        """J, (t, b, s, s); a copy."""
        return self.matrices.clone()

    def frobenius(self) -> Tensor:
        """‖J‖_F of the built matrices."""
        norms: Tensor = self.matrices.flatten(2).norm(dim=2)
        return norms

    def only(self, steps: Tensor) -> StepBlock:
        """Some of the steps, with the matrices that are known."""
        return _Some(self, steps)


class _Some(MatrixBlock):
    """Some steps of a block."""

    def __init__(self, whole: MatrixBlock, steps: Tensor) -> None:
        self.cell, self.x = whole.cell, whole.x[steps]
        self.previous, self.following = whole.previous[steps], whole.following[steps]
        self.gates = {name: values[steps] for name, values in whole.gates.items()}
        self._matrices = whole.matrices[steps]

    @property
    def matrices(self) -> Tensor:
        """J of these steps."""
        return self._matrices

    def input_vjp(self, u: Tensor) -> Tensor:
        """Not available for some steps alone."""
        return torch.full_like(self.x[..., None], torch.nan)
