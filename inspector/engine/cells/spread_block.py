"""The backward pass through one step for many gradients: elementwise where possible, then one matrix product.

The gradient at the pre-activations of a closed-form step is the gradient v of the state times factors a_g of that step,
entry by entry; it need not be stored. Its product with the recurrent weights is v Σ_g diag(a_g) W_g, and the
sum is made once a step: a half (LSTM) or two thirds (GRU) of the multiplications are saved, and most of the memory.

Letters: t step, n row (one gradient each), m entry of a row, j gate, h hidden unit, g = all gates side by side, o row
of a weight that multiplies gradients at the pre-activations.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.linear import linear

TILE_BYTES = 512 << 10
"""Bytes of rows that are processed together: they stay in a core's cache until everything is computed from them."""


class Spread:
    """How gradients at the pre-activations, (n, g), are made of rows (n, m): columns of them times factors (t, j, h).

    The parts follow each other as the gates do; their columns do not overlap and are all columns together.
    """

    def __init__(self, *parts: tuple[slice, Tensor]) -> None:
        self.parts = parts

    @cached_property
    def lengths(self) -> Tensor:
        """Norm of all factors of each column, (t, m):
        a row times these has the norm of the gradient that it represents."""
        first = self.parts[0][1]
        found = first.new_empty(len(first), sum(factors.shape[2] for _, factors in self.parts))
        for columns, factors in self.parts:
            found[:, columns] = torch.linalg.vector_norm(factors, dim=1)
        return found

    def dense_(self, rows: Tensor, at: int, out: Tensor) -> None:
        """Write the gradients of rows (n, m) at one step into `out` (n, g)."""
        first = 0
        for columns, factors in self.parts:
            last = first + factors[at].numel()
            values = out[:, first:last].unflatten(1, factors.shape[1:])
            torch.mul(rows[:, columns].unsqueeze(1), factors[at], out=values)
            first = last

    def dense(self, rows: Tensor, at: int) -> Tensor:
        """The gradients of rows (n, m) at one step, (n, g), a new tensor."""
        out = rows.new_empty(len(rows), sum(factors[at].numel() for _, factors in self.parts))
        self.dense_(rows, at, out)
        return out

    def each(self, rows: Tensor, steps: slice) -> Tensor:
        """One row a step, (t, m), to one gradient a step, (t, g)."""
        found = [(rows[:, columns].unsqueeze(1) * factors[steps]).flatten(1) for columns, factors in self.parts]
        return torch.cat(found, dim=1)

    def fold_(self, weight: Tensor, at: int, out: Tensor) -> None:
        """Write into `out` (o, m) the matrix whose product with rows is that of their gradients with weight (o, g)."""
        first = 0
        for columns, factors in self.parts:
            sums = out[:, columns]
            for j, factor in enumerate(factors[at]):
                gate = weight[:, first : first + len(factor)]
                first += len(factor)
                if j:
                    sums.addcmul_(gate, factor)
                else:
                    torch.mul(gate, factor, out=sums)


class SpreadBlock(StepBlock):
    """A block whose gradients at the pre-activations are spread rows. `recurrent` names those that see the state."""

    recurrent: ClassVar[str]

    @property
    @abstractmethod
    def spreads(self) -> Mapping[str, Spread]:
        """{signal of `pull_`: its spread}; empty where the block computes its backward pass by another method."""

    @property
    @abstractmethod
    def w_back(self) -> Tensor:
        """The recurrent weights as the backward pass multiplies with them: (h, g)."""

    def open_(self, rows: Tensor, at: int) -> None:
        """Gradients after the step, rows (n, s), become in place those that are spread."""
        return

    def close_(self, rows: Tensor, moved: Tensor, at: int) -> None:
        """Opened rows become in place the gradients before the step;
        moved (n, h) is the gradient through the weights."""
        rows.copy_(moved)

    def weights(self, probes: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
        """What gradients are multiplied with, (o, g) for each signal:
        in the backward pass, then with the probes (q, g)."""
        own = [self.w_back, *(values for signal, values in probes.items() if signal == self.recurrent)]
        others = [(signal, values) for signal, values in probes.items() if signal != self.recurrent]
        return [(self.recurrent, torch.cat(own)), *others]

    def folded(self, at: int, weights: Sequence[tuple[str, Tensor]]) -> Tensor:
        """(o, m): what opened rows are multiplied with, all the weights' rows one below the other."""
        out = self.w_back.new_empty(sum(len(weight) for _, weight in weights), self.shape[2])
        first = 0
        for signal, weight in weights:
            self.spreads[signal].fold_(weight, at, out[first : first + len(weight)])
            first += len(weight)
        return out

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """Back through one step with all gradients at the pre-activations: see StepBlock."""
        self.open_(rows, at)
        found = {signal: spread.dense(rows, at) for signal, spread in self.spreads.items()}
        self.close_(rows, linear(found[self.recurrent], self.w_back), at)
        return found

    def back_(self, rows: Tensor, at: int) -> None:
        """Back through one step, tile by tile with the folded matrix."""
        if not self.spreads:
            self.pull_(rows, at)
            return
        matrix = self.folded(at, [(self.recurrent, self.w_back)])
        for tile in tiles(rows):
            self.open_(rows[tile], at)
            self.close_(rows[tile], linear(rows[tile], matrix), at)


def tiles(rows: Tensor) -> Iterator[slice]:
    """Rows (n, m) cut into tiles of at most TILE_BYTES."""
    size = max(1, TILE_BYTES // (rows.shape[1] * rows.element_size()))
    for start in range(0, len(rows), size):
        yield slice(start, min(start + size, len(rows)))
