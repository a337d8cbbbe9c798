"""Linear attention: keys and values are summed first, φ(q)·(Σ φ(k)ᵀv), so that no weights are ever computed.

The equivalent weights are φ(q)·φ(k), divided by what the model divides the result by (Katharopoulos et al. 2020,
equation 4); a running sum over the keys (equation 8) is the same with the keys after the query masked. They are shown
where each row sums to 1 and none is below 0; elsewhere there is no map, which is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from inspector.engine.attention.written.contraction import LETTERS, Contraction, Operand
from inspector.engine.attention.written.facts import FactTable, Origin
from inspector.engine.attention.written.scores import POWER

NO_MAP = "its result is not divided by the sum of its weights, so there are no weights that sum to 1"
NEAR = 1e-3
"""How far the sum of weights may be from 1, half precision included."""
OVER = ("Reciprocal", "Div", "Pow", "Exp", "Rsqrt")
"""Nodes of autograd's graph that make one over something."""
MOST = 4
"""Sums of keys and values that are remembered: each is used soon."""


@dataclass(frozen=True, slots=True)
class Result:
    """The memory of a result, with a letter for each of its axes: a transposed view of it is found again."""

    alive: StorageWeakRef
    axes: str
    shape: torch.Size
    stride: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor, axes: str) -> Result:
        """A new result."""
        return cls(StorageWeakRef(tensor.untyped_storage()), axes, tensor.shape, tensor.stride())

    def axes_of(self, view: Tensor) -> str | None:
        """The letters of a view with the same axes in any order; None for other views."""
        left = list(zip(self.shape, self.stride, self.axes, strict=True))
        found = []
        for size, step in zip(view.shape, view.stride(), strict=True):
            one = next((entry for entry in left if entry[:2] == (size, step)), None)
            if one is None:
                return None
            left.remove(one)
            found.append(one[2])
        return None if left else "".join(found)


@dataclass(frozen=True, slots=True)
class Summed:
    """A sum over positions of products of keys and values, or such a running sum along the axis `running`."""

    result: Result
    keys: Operand
    values: Operand
    running: str = ""


@dataclass(slots=True)
class Used:
    """A product of queries and such a sum: the weights that it stands for, not yet divided by anything.

    `pair`: the queries and keys with their graph; twice the weights where the model computed these. `keys`: how many,
    where these are not the last axis but one.
    """

    result: Result
    weights: Operand
    values: Operand
    masked: Tensor | None
    origin: Origin
    taken: bool = False
    pair: tuple[Tensor, Tensor] | None = None
    keys: int | None = None


@dataclass(slots=True)
class LinearAttention:
    """Sums of keys and values, and what was multiplied with them, by the identity of the results."""

    sums: dict[int, Summed] = field(default_factory=dict)
    uses: dict[int, Used] = field(default_factory=dict)
    powers: dict[int, tuple[StorageWeakRef, list[Origin]]] = field(default_factory=dict)
    """By the memory of exponentials, which may be features of queries and keys, what they were listed as."""

    def knows(self, tensor: Tensor) -> bool:
        """Whether a tensor is a sum of keys and values."""
        return bool(self.sums) and _found(self.sums, tensor) is not None

    def waits(self, tensor: Tensor) -> bool:
        """Whether a tensor is a sum of weights and values that nothing has divided yet."""
        known = _found(self.uses, tensor) if self.uses else None
        return known is not None and not known.taken

    def list_power(self, power: Tensor, origin: Origin) -> None:
        """An exponential is listed, until it turns out to be features."""
        storage = power.untyped_storage()
        known = self.powers.get(storage._cdata)
        before = known[1] if known is not None and not known[0].expired() else []
        self.powers.pop(storage._cdata, None)
        self.powers[storage._cdata] = StorageWeakRef(storage), [*before, origin]
        if len(self.powers) > 2 * MOST:
            self.powers.pop(next(iter(self.powers)))

    def take(self, used: Used) -> None:
        """Its weights are attention: the exponentials in them are listed no more."""
        used.taken = True
        for one in used.pair or ():
            known = self.powers.get(one.untyped_storage()._cdata)
            for origin in known[1] if known is not None else ():
                origin.taken = True

    def summed(self, contraction: Contraction, positions: tuple[int, ...]) -> None:
        """A contraction that may be a sum over positions of keys and values."""
        roles = contraction.roles()
        out = contraction.out
        if roles is None or len(roles.keys) != 1 or not roles.queries or not roles.features:
            return
        if contraction.left.size(roles.keys) in positions:
            _keep(self.sums, out.tensor, Summed(Result.of(out.tensor, out.axes), contraction.left, contraction.right))

    def running(self, left: Tensor, right: Tensor, dim: int, out: Tensor) -> None:
        """A running sum along an axis of the product of keys (…, d, 1) and values (…, 1, e), in any order."""
        count = out.dim()
        axes, dim = LETTERS[:count], dim % count
        operands = [Operand(one, axes[count - one.dim() :]).without(_repeated(one, out, axes)) for one in (left, right)]
        if all(axes[dim] in one.axes for one in operands):
            keys, values = operands
            _keep(self.sums, out, Summed(Result.of(out, axes), keys, values, axes[dim]))

    def used(self, contraction: Contraction, origin: Origin) -> Used | None:
        """A contraction with such a sum as its right operand, as weights and values; None for any other."""
        known, roles = _found(self.sums, contraction.right.tensor), contraction.roles()
        if known is None or roles is None or len(contraction.right.axes) != contraction.right.tensor.dim():
            return None
        own = known.result.axes_of(contraction.right.tensor)
        if own is None:
            return None
        letters = _renamed(contraction, own, known)
        queries = Operand(contraction.left.tensor.detach(), _in(letters, contraction.left.axes))
        out, summed = _in(letters, contraction.out.axes), set(_in(letters, roles.keys))
        keys, values = (known.keys, known.values) if summed <= set(known.keys.axes) else (known.values, known.keys)
        if summed & set(values.axes) or not summed <= set(keys.axes):
            return None
        masked = None
        if known.running:  # the positions of keys and values are not those of the queries any more
            other = next(axis for axis in LETTERS if axis not in queries.axes + keys.axes + values.axes)
            keys, values = (Operand(one.tensor, one.axes.replace(known.running, other)) for one in (keys, values))
        axes = _without(queries.axes, summed)
        axes += _without(keys.axes, summed | set(axes))
        weights = torch.einsum(f"{queries.axes},{keys.axes}->{axes}", queries.tensor, keys.tensor.detach())
        if known.running:
            masked = _later(weights, axes.index(known.running), axes.index(other))
            weights = weights.masked_fill(masked, 0.0)
        found = Used(Result.of(contraction.out.tensor, out), Operand(weights, axes), values, masked, origin)
        found.pair = contraction.left.tensor, keys.tensor
        found.keys = keys.size(other) if known.running else None
        _keep(self.uses, contraction.out.tensor, found)
        return found

    def undivided(self, contraction: Contraction, masked: Tensor | None, origin: Origin) -> None:
        """A contraction of weights that may be divided by their sum afterwards."""
        out, weights = contraction.out, replace(contraction.left, tensor=contraction.left.tensor.detach())
        found = Used(Result.of(out.tensor, out.axes), weights, contraction.right, masked, origin)
        found.pair = contraction.left.tensor, contraction.left.tensor
        _keep(self.uses, out.tensor, found)

    def divided(self, source: Tensor, factor: Tensor, out: Tensor) -> tuple[Contraction, Used] | None:
        """A result times a factor for each query, as the sum of products that it is then; None for other products."""
        known = _found(self.uses, source)
        axes = None if known is None else known.result.axes_of(source)
        if known is None or axes is None or known.taken or out.shape != source.shape:
            return None
        features = "".join(axis for axis in axes if axis not in known.weights.axes)
        each = wide = factor.detach().expand(out.shape)
        for axis in features:
            each = each.narrow(axes.index(axis), 0, 1)
        if not bool((wide == each).all()):
            return None
        rows = Operand(each, axes).without(features)
        scale = rows.ordered("".join(axis for axis in known.weights.axes if axis in rows.axes))
        for number, axis in enumerate(known.weights.axes):
            scale = scale if axis in rows.axes else scale.unsqueeze(number)
        weights = replace(known.weights, tensor=known.weights.tensor * scale)
        return Contraction.of(weights, known.values, Operand(out, axes)), known


def is_share(weights: Operand, used: Used, factor: Tensor) -> bool:
    """Whether a factor of the weights is one over something: they sum to 1, or it was made by a division, a power or an
    exponential. A gate for each query, before the division, makes sums of any size.

    Counter-example: without a graph, one over a sum of weights and a sink.
    """
    at = tuple(number for number, axis in enumerate(weights.axes) if axis not in used.result.axes)
    sums = weights.tensor.sum(at)
    one = torch.isclose(sums, torch.ones_like(sums), atol=NEAR, rtol=0.0) | sums.isnan()
    return bool(one.all()) or type(factor.grad_fn).__name__.startswith(OVER)


def of_features(facts: FactTable, known: LinearAttention, contraction: Contraction) -> bool:
    """Whether exponentials that are no weights yet are multiplied with a sum of keys and values: features."""
    one, two = contraction.left.tensor, contraction.right.tensor
    of_both = [facts.of(factor) for factor, other in ((one, two), (two, one)) if known.knows(other)]
    return any(of is not None and of.origin is None and of.scored == POWER for of in of_both)


def _repeated(factor: Tensor, out: Tensor, axes: str) -> str:
    """The axes of size 1 along which a factor of an outer product is repeated: of the last two those that it has for
    the other one, before them those that the product has more entries of (a batch of one sequence is no such axis)."""
    own = zip(axes[out.dim() - factor.dim() :], factor.shape, strict=True)
    return "".join(axis for axis, size in own if size == 1 and (axis in axes[-2:] or out.shape[axes.index(axis)] > 1))


def _renamed(contraction: Contraction, own: str, known: Summed) -> dict[str, str]:
    """The letters of a contraction by those of the sum that is its right operand; what only it has gets new ones."""
    letters = dict(zip(contraction.right.axes, own, strict=True))
    free = iter(axis for axis in reversed(LETTERS) if axis not in known.keys.axes + known.values.axes)
    for axis in contraction.left.axes + contraction.out.axes:
        letters[axis] = letters[axis] if axis in letters else next(free)
    return letters


def _in(letters: dict[str, str], axes: str) -> str:
    return "".join(letters[axis] for axis in axes)


def _without(axes: str, left_out: set[str]) -> str:
    return "".join(axis for axis in axes if axis not in left_out)


def _later(weights: Tensor, query: int, key: int) -> Tensor:
    """True where a key comes after the query, of the shape of the weights."""
    positions = torch.arange(weights.shape[query], device=weights.device)
    shape = [1] * weights.dim()
    shape[query] = shape[key] = -1
    first, last = [*shape], [*shape]
    first[key], last[query] = 1, 1
    return (positions.reshape(last) > positions.reshape(first)).expand(weights.shape)


Known = TypeVar("Known", Summed, Used)


def _found(table: dict[int, Known], tensor: Tensor) -> Known | None:
    """What is known of the memory of a tensor."""
    known = table.get(tensor.untyped_storage()._cdata)
    return None if known is None or known.result.alive.expired() else known


def _keep(table: dict[int, Known], tensor: Tensor, value: Known) -> None:
    """By the memory of a tensor, the last ones."""
    number = tensor.untyped_storage()._cdata
    table.pop(number, None)
    table[number] = value
    if len(table) > MOST:
        table.pop(next(iter(table)))
