"""Attention over the edges of a graph: weights of edges, values of their sources, summed by the index of their targets.

`out.index_add(0, target, weight[:, None] * x[source])`: where the weights of the edges that arrive at each target sum
to 1 it is attention, and its map has the weight of each edge at (target, source).
Letters: e edge, q target, k source.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.attention.written import judging
from inspector.engine.attention.written.contraction import LETTERS, Contraction, Operand

NO_SOURCE = "the values of its edges were not seen to be rows of one tensor, taken by an index"
TOO_MANY = "its map over all pairs of positions would be too large"
TWICE = "two of its edges have the same source and the same target"
MOST_WEIGHTS = 1 << 25
REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of a tensor along an axis, by an index (e,)."""

    alive: weakref.ref[Tensor]
    rows: Tensor
    index: Tensor
    dim: int


@dataclass(frozen=True, slots=True)
class Edges:
    """A sum by an index of weights and values; `contraction` is it as a sum over all positions, or there is a reason.

    absent: True where there is no edge, of the shape of the contraction's weights.
    """

    shape: tuple[int, ...]
    contraction: Contraction | None = None
    absent: Tensor | None = None
    reason: str = ""


@dataclass(slots=True)
class ByIndex:
    """What was taken by an index, by the identity of the result."""

    taken: dict[int, Taken] = field(default_factory=dict)

    def note(self, rows: object, dim: int, index: object, out: object) -> None:
        """rows.index_select(dim, index), rows[index] or rows[:, index]."""
        if not (isinstance(rows, Tensor) and isinstance(out, Tensor) and isinstance(index, Tensor)):
            return
        if index.dtype == torch.long and index.dim() == 1 and out.is_floating_point() and out.dim() == rows.dim():
            self.taken.pop(id(out), None)
            self.taken[id(out)] = Taken(weakref.ref(out), rows, index.detach(), dim % rows.dim())
            if len(self.taken) > REMEMBERED:
                self.taken.pop(next(iter(self.taken)))

    def summed(self, factors: tuple[Tensor, Tensor], dim: int, index: Tensor, out: Tensor) -> Edges | None:
        """weights · values summed along `dim` by `index` (e,) into `out`; None for what is no attention."""
        for weights, values in (factors, factors[::-1]):
            if values.dim() == out.dim() and _are_weights(weights, values, dim, index, out.shape[dim]):
                return self._edges(weights.detach(), values, dim, index, out)
        return None

    def _edges(self, weights: Tensor, values: Tensor, dim: int, index: Tensor, out: Tensor) -> Edges:
        shape, known = tuple(weights.shape), self.taken.get(id(values))
        if known is None or known.alive() is not values or known.dim != dim:
            return Edges(shape, reason=NO_SOURCE)
        targets, sources = out.shape[dim], known.rows.shape[dim]
        absent = torch.ones(targets, sources, dtype=torch.bool, device=out.device)
        absent[index, known.index] = False
        if int((~absent).sum()) < len(index):
            return Edges(shape, reason=TWICE)
        axes, q, k = LETTERS[: out.dim()], LETTERS[out.dim()], LETTERS[out.dim() + 1]
        whole = weights[(None,) * (out.dim() - weights.dim())]
        own = [axis for axis in range(out.dim()) if axis != dim and whole.shape[axis] > 1]
        if targets * sources * math.prod(whole.shape[axis] for axis in own) > MOST_WEIGHTS:
            return Edges(shape, reason=TOO_MANY)
        each = whole.squeeze([axis for axis in range(out.dim()) if axis not in (dim, *own)])
        at = sum(axis < dim for axis in own)  # the axis of the edges among those that are left
        grid = each.new_zeros(targets, sources, *(whole.shape[axis] for axis in own))
        grid[index, known.index] = each.movedim(at, 0)
        letters = "".join(axes[axis] for axis in own) + q + k
        count = len(own)
        left = Operand(grid.movedim((0, 1), (count, count + 1)).contiguous(), letters)
        right = Operand(known.rows, axes[:dim] + k + axes[dim + 1 :])
        made = Contraction.of(left, right, Operand(out, axes[:dim] + q + axes[dim + 1 :]))
        return Edges(shape, made, absent.expand(left.tensor.shape))


def one_index(index: Tensor, dim: int) -> Tensor | None:
    """(e,) of the index of a scatter that is the same for all entries but along `dim`; None for others."""
    if index.dim() == 1:
        return index
    rows = index.movedim(dim, 0).flatten(1)
    return rows[:, 0] if rows.shape[1] and bool((rows == rows[:, :1]).all()) else None


def _are_weights(weights: Tensor, values: Tensor, dim: int, index: Tensor, targets: int) -> bool:
    """Whether what one factor has at the edges that arrive at a target sums to 1, of several at one of them at least;
    it is one number for each edge and head, not one for each entry of a value."""
    lacking = values.dim() - weights.dim()
    if not weights.is_floating_point() or dim < lacking or weights.shape[dim - lacking] != len(index):
        return False
    if not lacking and values.dim() > 1 and weights.shape[-1] == values.shape[-1] > 1:
        return False
    rows = judging.widened(weights.detach()).movedim(dim - lacking, 0).flatten(1)
    sums = rows.new_zeros(targets, rows.shape[1]).index_add(0, index, rows)
    counts = torch.bincount(index, minlength=targets)
    near = judging.TOLERANCE * 256 * torch.finfo(weights.dtype).eps + judging.AT_LEAST
    right = (sums[counts > 0] - 1).abs() <= near
    return bool((counts > 1).any()) and not bool((rows < 0).any()) and bool(right.all())
