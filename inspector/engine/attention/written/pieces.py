"""Weights that are taken one by one and added up: `sum(w[:, i : i + 1] * h[i] for i in range(n))`.

Each product takes the weights (b,) of one key; when the products of all keys are in one sum, it is the weighted sum.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.attention.written.contraction import LETTERS, Contraction, Operand
from inspector.engine.attention.written.facts import FactTable

MOST = 512
"""Partial sums that are followed at a time."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A sum of some products: the value of each key that it has, and the weights (b, k) or (k, b) of all keys."""

    result: weakref.ref[Tensor]
    weights: Tensor
    axis: int
    values: dict[int, Tensor]


@dataclass(slots=True)
class Pieces:
    """Partial sums, by the identity of the result."""

    facts: FactTable
    sums: dict[int, Partial] = field(default_factory=dict)

    def product(self, piece: Tensor, value: Tensor, out: Tensor) -> None:
        """A product of weights of one key and its value (b, …)."""
        known = self.facts.whole(piece)
        origin = None if known is None else known.facts.origin
        if known is None or origin is None or len(known.shape) != 2 or out.shape != value.shape:
            return
        axis = origin.axis
        rows, step = known.shape[1 - axis], known.stride[axis]
        column = piece.reshape(-1)
        key, rest = divmod(int(piece.storage_offset()) - known.offset, step) if step else (0, 1)
        if rest or column.numel() != rows or value.shape[:1] != (rows,) or piece.shape[:1] != (rows,):
            return
        weights = piece.detach().as_strided(known.shape, known.stride, known.offset)
        self._keep(out, weights, axis, {key: value.detach()})

    def plus(self, one: object, two: object, out: Tensor) -> Contraction | None:
        """A sum of partial sums, or of one and zeros; the weighted sum where it has every key now."""
        parts = [self.sums.get(id(given)) for given in (one, two)]
        known = [part for part, given in zip(parts, (one, two), strict=True) if part and part.result() is given]
        others = [given for part, given in zip(parts, (one, two), strict=True) if part is None]
        if not known or any(not _was_zero(given, out, known[0].result()) for given in others):
            return None
        first = known[0]
        values = {key: value for part in known for key, value in part.values.items()}
        same = all(part.weights.data_ptr() == first.weights.data_ptr() for part in known)
        if not same or len(values) != sum(len(part.values) for part in known):
            return None
        self._keep(out, first.weights, first.axis, values)
        count = first.weights.shape[first.axis]
        if len(values) < count:
            return None
        b, k = LETTERS[:1], LETTERS[1:2]
        features = LETTERS[2 : 1 + out.dim()]
        stacked = torch.stack([values[key] for key in range(count)], 1)
        axes = b + k if first.axis == 1 else k + b
        return Contraction.of(
            Operand(first.weights, axes), Operand(stacked, b + k + features), Operand(out, b + features)
        )

    def _keep(self, out: Tensor, weights: Tensor, axis: int, values: dict[int, Tensor]) -> None:
        number = id(out)
        self.sums[number] = Partial(weakref.ref(out, lambda _: self.sums.pop(number, None)), weights, axis, values)
        if len(self.sums) > MOST:
            self.sums.pop(next(iter(self.sums)))


def _was_zero(given: object, out: Tensor, added: Tensor | None) -> bool:
    """Whether something is 0, with which a sum begins; or was, where the sum was written into it."""
    if given is out and added is not None:
        return torch.equal(out.detach(), added.detach())
    if isinstance(given, Tensor):
        return not given.is_meta and not bool(given.detach().any())
    return given == 0
