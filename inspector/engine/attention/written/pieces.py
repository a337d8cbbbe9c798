"""Weights that are taken one by one and added up: `sum(w[..., i, None] * h[:, i] for i in range(n))`.

Each product takes the weights of one key; when the products of all keys are in one sum, it is the weighted sum. So is
the sum of a stack of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.attention.written.contraction import LETTERS, Contraction, Operand
from inspector.engine.attention.written.facts import FactTable, Known

MOST = 512
"""Partial sums that are followed at a time."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A sum of some products: the value of each key that it has, and the weights of all keys.

    `axis` is that of the keys in the weights, `places` the axis of the result for each other axis of the weights.
    """

    result: weakref.ref[Tensor]
    weights: Tensor
    axis: int
    places: tuple[int, ...]
    values: dict[int, Tensor]


@dataclass(slots=True)
class Pieces:
    """Partial sums, by the identity of the result."""

    facts: FactTable
    sums: dict[int, Partial] = field(default_factory=dict)

    def product(self, piece: Tensor, value: Tensor, out: Tensor) -> None:
        """A product of weights of one key and its value."""
        known = self.facts.whole(piece)
        origin = None if known is None else known.facts.origin
        if known is None or origin is None or origin.shape != tuple(known.shape) or piece.dim() > out.dim():
            return
        step, axis = known.stride[origin.axis], origin.axis
        key, rest = divmod(int(piece.storage_offset()) - known.offset, step) if step else (0, 1)
        places = None if rest or not 0 <= key < known.shape[axis] else _places(piece, known, axis, out.dim())
        if places is not None:
            base = piece if piece._base is None else piece._base
            with torch.enable_grad():  # a model's own graph tells of which sequence the keys are
                weights = base.as_strided(known.shape, known.stride, known.offset)
            self._keep(out, Partial(weakref.ref(out), weights, axis, places, {key: value.detach()}))

    def plus(self, one: object, two: object, out: Tensor) -> Contraction | None:
        """A sum of partial sums, or of one and zeros; the weighted sum where it has every key now."""
        parts = [self._of(given) for given in (one, two)]
        known = [part for part in parts if part is not None]
        others = [given for part, given in zip(parts, (one, two), strict=True) if part is None]
        if not known or any(not _was_zero(given, out, known[0].result()) for given in others):
            return None
        together = _together(known)
        if together is None:
            return None
        first = known[0]
        self._keep(out, Partial(weakref.ref(out), first.weights, first.axis, first.places, together))
        if len(together) < first.weights.shape[first.axis]:
            return None
        axes = LETTERS[: out.dim()]
        key = LETTERS[out.dim()]
        weights = Operand(first.weights, _letters(first, axes, key))
        values = [_wide(together[number], out.dim()) for number in range(len(together))]
        return Contraction.of(weights, Operand(torch.stack(values), key + axes), Operand(out, axes))

    def stacked(self, given: Sequence[Tensor], dim: int, out: Tensor) -> tuple[Tensor, Tensor] | None:
        """The weights and values of a stack, or of rows beside each other, of the products of all keys in order, which
        is their product. None for any other."""
        parts = [self._of(one) for one in given]
        known = [part for part in parts if part is not None]
        together = _together(known) if len(known) == len(parts) else None
        first = known[0] if known else None
        if first is None or together is None or list(together) != list(range(first.weights.shape[first.axis])):
            return None
        if out.dim() == given[0].dim() + 1:
            places = [place + (place >= dim) for place in first.places]
            values = torch.stack([_wide(one, given[0].dim()) for one in together.values()], dim)
        elif all(one.shape[dim] == 1 for one in given):
            places, values = list(first.places), torch.cat([_wide(one, out.dim()) for one in together.values()], dim)
        else:
            return None
        if dim in places and first.weights.shape[_axis_at(first, places.index(dim))] != 1:
            return None
        return _spread(first, places, dim, out.dim()), values

    def _of(self, given: object) -> Partial | None:
        known = self.sums.get(id(given))
        return known if known is not None and known.result() is given else None

    def _keep(self, out: Tensor, partial: Partial) -> None:
        number = id(out)
        result = weakref.ref(out, lambda _: self.sums.pop(number, None))
        self.sums[number] = Partial(result, partial.weights, partial.axis, partial.places, partial.values)
        if len(self.sums) > MOST:
            self.sums.pop(next(iter(self.sums)))


def _places(piece: Tensor, known: Known, axis: int, count: int) -> tuple[int, ...] | None:
    """For each axis of the weights but that of the keys, the axis of the result along which the piece has it.

    None where the piece is not all weights of one key.
    """
    shift = count - piece.dim()
    free = list(range(piece.dim()))
    found = []
    for size, stride in ((known.shape[n], known.stride[n]) for n in range(len(known.shape)) if n != axis):
        fits = (n for n in free if piece.shape[n] == size and (size == 1 or piece.stride(n) == stride))
        at = next(fits, None)
        if at is None:
            return None
        free = [n for n in free if n > at]
        found.append(at + shift)
    rest = set(range(piece.dim())) - {at - shift for at in found}
    return tuple(found) if all(piece.shape[n] == 1 for n in rest) else None


def _together(known: Sequence[Partial]) -> dict[int, Tensor] | None:
    """The values of several sums; None where their weights are others, or a key is in two of them."""
    if not known:
        return None
    first = known[0]
    values = {key: value for part in known for key, value in part.values.items()}
    same = all(part.weights.data_ptr() == first.weights.data_ptr() and part.places == first.places for part in known)
    return values if same and len(values) == sum(len(part.values) for part in known) else None


def _letters(partial: Partial, axes: str, key: str) -> str:
    """A letter for each axis of the weights."""
    own = [axes[place] for place in partial.places]
    own.insert(partial.axis, key)
    return "".join(own)


def _axis_at(partial: Partial, number: int) -> int:
    """The axis of the weights that is the n-th without that of the keys."""
    return number + (number >= partial.axis)


def _wide(value: Tensor, count: int) -> Tensor:
    """With axes of size 1 in front."""
    return value.reshape(*(1,) * (count - value.dim()), *value.shape)


def _spread(partial: Partial, places: Sequence[int], dim: int, count: int) -> Tensor:
    """The weights with the keys along an axis of a result of `count` axes, and the others at their places."""
    weights = partial.weights.movedim(partial.axis, -1)
    shape = [1] * count
    kept = [n for n in range(len(places)) if places[n] != dim]
    for n in kept:
        shape[places[n]] = weights.shape[n]
    weights = weights.reshape(*(weights.shape[n] for n in kept), weights.shape[-1])
    before = sum(places[n] < dim for n in kept)
    shape[dim] = weights.shape[-1]
    return weights.movedim(-1, before).reshape(shape)


def _was_zero(given: object, out: Tensor, added: Tensor | None) -> bool:
    """Whether something is 0, with which a sum begins; or was, where the sum was written into it."""
    if given is out and added is not None:
        return torch.equal(out.detach(), added.detach())
    if isinstance(given, Tensor):
        return not given.is_meta and not bool(given.detach().any())
    return given == 0
