"""Tensors of a stretch of operations, and some entries of them by which equations between them are tried.

A candidate is laid into the axes of another tensor as broadcasting does it, or by leaving out axes: (b, t, n) into
(b, t, d, n). Letters: t step, p entry that is looked at.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to, name_of, results_of
from inspector.engine.scans.mixing import calls_named

LOOKED_AT = 8
"""Entries of a step by which an equation is tried; what passes is checked at all of them."""
MOST_CALLS = 600
"""Operations that lead to a state among whose tensors a and b are looked for."""
MOST = 1 << 26
"""Entries of a tensor that is tried."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the run and the operation that made it, -1 where it was given. `exponent`: e to it is meant."""

    tensor: Tensor
    made: int
    exponent: bool = False

    def numbers(self) -> Tensor:
        """Its entries, detached."""
        own = self.tensor.detach()
        return own.exp() if self.exponent else own


class Flow:
    """What each tensor of a run was computed from, in-place writing included."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._writers: dict[int, list[int]] = {}
        self._stacks: dict[int, tuple[Tensor, tuple[Tensor, ...], int]] = {}
        for n in calls_named(table, _in_place):
            call = table.calls[n]
            if call[1] and isinstance(call[1][0], Tensor):
                self._writers.setdefault(_memory(call[1][0]), []).append(n)

    def stack(self, each: Sequence[Tensor], dim: int) -> Value:
        """What iterations made or read, side by side along a new axis; of one tensor in all of them, the tensor."""
        same = all(one is each[0] for one in each)
        made = each[0].detach().unsqueeze(dim) if same else torch.stack([one.detach() for one in each], dim)
        self._stacks[id(made)] = made, tuple(each), dim
        return Value(made, 0)

    def stacked(self, value: Value) -> tuple[tuple[Tensor, ...], int] | None:
        """What `stack` put side by side, and along which axis; None for other tensors."""
        found = self._stacks.get(id(value.tensor))
        return None if found is None else found[1:]

    def value(self, tensor: Tensor) -> Value:
        """A tensor with the operation that made it, or that was the last to write into its memory."""
        made = self.table.maker(id(tensor))
        return Value(tensor, max([-1 if made is None else made, *self._writers.get(_memory(tensor), ())]))

    def made_by(self, numbers: Iterable[int]) -> list[Value]:
        """What these operations returned or wrote into, once, in their order."""
        found: dict[int, Value] = {}
        for n in numbers:
            if n >= len(self.table.calls):
                break
            call = self.table.calls[n]
            written = (call[1][0],) if _in_place(name_of(call[0])) and call[1] else ()
            for one in (*results_of(call[3]), *written):
                if isinstance(one, Tensor) and id(one) not in found:
                    found[id(one)] = self.value(one)
        return [one for one in found.values() if _may_be(one.tensor)]

    def before(self, value: Value, most: int = MOST_CALLS) -> list[Value]:
        """What a tensor was computed from, the nearest first, over at most so many operations."""
        found: dict[int, Value] = {}
        waiting, done = deque(self.calls_of(value.tensor)), set[int]()
        while waiting and len(done) < most:
            n = waiting.popleft()
            if n in done or n > value.made:
                continue
            done.add(n)
            for one in given_to(self.table.calls[n]):
                if id(one) not in found:
                    found[id(one)] = self.value(one)
                    waiting.extend(self.calls_of(one))
        return [one for one in found.values() if _may_be(one.tensor)]

    def given(self, numbers: Iterable[int]) -> list[Value]:
        """What these operations were given, once, in their order."""
        found = {id(one): one for n in numbers for one in given_to(self.table.calls[n])}
        return [self.value(one) for one in found.values() if _may_be(one)]

    def calls_of(self, tensor: Tensor) -> list[int]:
        """The numbers of the operations that made a tensor or wrote into its memory; [] of what the run was given."""
        made = self.table.maker(id(tensor))
        return [*([] if made is None else [made]), *reversed(self._writers.get(_memory(tensor), ()))]


def _in_place(name: str) -> bool:
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _may_be(tensor: Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and 0 < tensor.numel() <= MOST


@dataclass(frozen=True)
class Layout:
    """The axes of a state: which are the steps and the sequences of the batch; all others are its units.

    Attributes:
        shape: of the whole tensor.
        steps, batch: numbers of these axes; batch is None where there is one sequence without an axis.
        sample: the sequence that is looked at.
    """

    shape: tuple[int, ...]
    steps: int
    batch: int | None
    sample: int

    @cached_property
    def units(self) -> tuple[int, ...]:
        """The axes of units."""
        return tuple(n for n in range(len(self.shape)) if n not in (self.steps, self.batch))

    @cached_property
    def picked(self) -> tuple[Tensor, ...]:
        """Indices of the entries that are looked at along each axis but the steps', in the order of axes."""
        sizes = [self.shape[n] for n in self.units]
        count = int(torch.tensor(sizes).prod()) if sizes else 1
        flat = torch.linspace(0, count - 1, min(LOOKED_AT, count)).round().long()
        own: dict[int, Tensor] = {}
        for size, axis in zip(reversed(sizes), reversed(self.units), strict=True):
            own[axis], flat = flat % size, flat // size
        if self.batch is not None:
            own[self.batch] = torch.full_like(next(iter(own.values()), flat), self.sample)
        return tuple(own[axis] for axis in sorted(own))

    def by_step(self, tensor: Tensor) -> bool:
        """Whether a tensor in these axes has entries of its own for each step, and not the same spread over them."""
        return tensor.expand(self.shape).stride(self.steps) != 0

    def some(self, tensor: Tensor) -> Tensor:
        """(t, p) the entries of a tensor in these axes that are looked at, in double precision."""
        whole = tensor.expand(self.shape).movedim(self.steps, 0)
        at: tuple[slice | Tensor, ...] = (slice(None), *self.picked)
        return wide(whole[at] if self.picked else whole[:, None])

    def rows(self, tensor: Tensor, sample: int | None = None) -> Tensor:
        """(t, b, k) all entries by step and sequence, the units flat; of one sequence alone where it is given."""
        whole = tensor.expand(self.shape)
        whole = whole[None].movedim(self.steps + 1, 0) if self.batch is None else whole.movedim(
            (self.steps, self.batch), (0, 1)
        )  # fmt: skip
        return (whole if sample is None or self.batch is None else whole[:, sample : sample + 1]).flatten(2)


def rounding(dtype: torch.dtype) -> float:
    """The error, beside the largest value, below which a difference is rounding: 10⁻⁸ for float64, 3·10⁻⁴ for float32,
    since sums over many steps round more often than one step does."""
    return math.sqrt(torch.finfo(dtype).eps)


def wide(tensor: Tensor) -> Tensor:
    """In double precision, in main memory."""
    return tensor.cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)  # a device may have no float64


def laid(shape: Sequence[int], into: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The shapes of as many axes as `into` that a tensor of a shape may take by new axes of size 1, to be broadcast."""
    for axes in combinations(range(len(into)), len(shape)):
        if all(size in (1, into[axis]) for size, axis in zip(shape, axes, strict=True)):
            own = dict(zip(axes, shape, strict=True))
            yield tuple(own.get(axis, 1) for axis in range(len(into)))


def by_broadcasting(shape: Sequence[int], into: Sequence[int]) -> bool:
    """Whether a tensor of a shape is broadcast to another shape as it is."""
    own = (1,) * (len(into) - len(shape)) + tuple(shape)
    return len(own) == len(into) and all(size in (1, whole) for size, whole in zip(own, into, strict=True))
