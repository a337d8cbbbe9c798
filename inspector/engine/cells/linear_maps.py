"""Jacobians of some steps of one sample as linear maps, with what is known of their zeros.

Where a part of the state enters a step unit by unit only (an LSTM's c), its columns hold diagonals: a product with them
is elementwise, and a product with J takes half of the multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Diagonal = tuple[slice, slice, Tensor]
"""(rows, columns, entries (n, h)): a part of each matrix that is diagonal."""


@dataclass(frozen=True)
class LinearMaps:
    """J of n steps, as the model's dtype has them.

    Attributes:
        size: S, the entries of the state.
        columns: those that are dense.
        dense: (n, S, columns) these columns.
        diagonals: what the other columns hold; no two of them lie in the same rows.
    """

    size: int
    columns: slice
    dense: Tensor
    diagonals: tuple[Diagonal, ...] = ()

    @classmethod
    def of(cls, matrices: Tensor) -> LinearMaps:
        """Dense matrices (n, S, S)."""
        return cls(matrices.shape[-1], slice(0, matrices.shape[-1]), matrices)

    def __len__(self) -> int:
        return len(self.dense)

    def __getitem__(self, some: slice) -> LinearMaps:
        parts = tuple((rows, columns, entries[some]) for rows, columns, entries in self.diagonals)
        return LinearMaps(self.size, self.columns, self.dense[some], parts)

    def push(self, number: int, vectors: Tensor) -> Tensor:
        """J of one step times (S, p), in float64."""
        moved = self.dense[number].double() @ vectors[self.columns]
        for rows, columns, entries in self.diagonals:
            moved[rows].addcmul_(entries[number, :, None].double(), vectors[columns])
        return moved

    def whole(self) -> Tensor:
        """The matrices, (n, S, S)."""
        if not self.diagonals:
            return self.dense
        found = self.dense.new_zeros(len(self), self.size, self.size)
        found[..., self.columns] = self.dense
        for rows, columns, entries in self.diagonals:
            found[:, rows, columns].diagonal(dim1=1, dim2=2).copy_(entries)
        return found

    def finite(self) -> Tensor:
        """(n,) whether a step's Jacobian holds neither NaN nor infinity."""
        found = torch.isfinite(self.dense).flatten(1).all(1)
        for _, _, entries in self.diagonals:
            found &= torch.isfinite(entries).all(1)
        return found

    @property
    def all_finite(self) -> bool:
        """Whether all are; by their sums where these are finite, in a tenth of the time."""
        parts = [self.dense, *(entries for _, _, entries in self.diagonals)]
        return all(bool(torch.isfinite(part.sum())) for part in parts) or bool(self.finite().all())
