"""Results of attention that are put beside each other along the axis of their queries: one map, computed in blocks.

A model that computes attention for some queries at a time joins the results with `cat`, or writes them into a buffer.
The results are followed through what keeps each position to itself (reshapes, casts, dropout, a projection).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from inspector.engine.attention.memory import storage_of
from inspector.engine.trace.trace import Attention

MOST = 4096
"""Results that are known at a time."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is known of a tensor: of which attention it is the result, and the memory, which its number is alive by."""

    alive: StorageWeakRef
    attention: Attention


@dataclass(slots=True)
class Results:
    """By the number of the memory."""

    known: dict[int, Result] = field(default_factory=dict)
    buffers: dict[int, tuple[StorageWeakRef, int]] = field(default_factory=dict)
    """Of buffers into which results are written, which number their map has."""
    stacks: dict[int, tuple[StorageWeakRef, torch.Size, int, list[Attention]]] = field(default_factory=dict)
    """Results that were stacked in front of their axis of queries, with the shape and that axis."""
    count: int = 0

    def note(self, tensor: object, attention: Attention) -> None:
        """A tensor is the result of an attention, or was made of it position by position."""
        storage = _storage(tensor)
        if storage is not None:
            self.known.pop(storage._cdata, None)
            self.known[storage._cdata] = Result(StorageWeakRef(storage), attention)
            if len(self.known) > MOST:
                del self.known[next(iter(self.known))]

    def of(self, tensor: object) -> Attention | None:
        """The attention of which a tensor, or a view of it, is the result."""
        storage = _storage(tensor) if self.known else None
        found = None if storage is None else self.known.get(storage._cdata)
        return None if found is None else found.attention

    def pass_on(self, source: object, out: object) -> None:
        """`out` was made of `source` position by position."""
        found = self.of(source)
        if found is not None and out is not source:
            self.note(out, found)

    def beside(self, given: Sequence[Tensor], dim: int) -> None:
        """Tensors are put beside each other along an axis: whether these are blocks of queries."""
        self._join(self._blocks(given, dim))

    def stacked(self, given: Sequence[Tensor], dim: int, out: Tensor) -> None:
        """Tensors are stacked along a new axis, directly in front of that of their queries."""
        seen = self._blocks(given, dim) if dim < out.dim() - 1 else []
        storage = _storage(out) if seen else None
        if storage is not None:
            self.stacks = {storage._cdata: (StorageWeakRef(storage), out.shape, dim, seen)}

    def reshaped(self, source: Tensor, out: Tensor) -> None:
        """The axis along which results were stacked is merged with that of their queries."""
        storage = _storage(source) if self.stacks else None
        found = None if storage is None else self.stacks.get(storage._cdata)
        if found is not None and found[1] == source.shape:
            _, shape, dim, seen = found
            if out.shape == (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]):
                self._join(seen)

    def _blocks(self, given: Sequence[Tensor], dim: int) -> list[Attention]:
        """Of which attentions they are the results, whose queries lie along an axis; none where one is of none."""
        seen = [(self.of(part), part) for part in given] if self.known else []
        found = [one for one, part in seen if one is not None and _along_queries(part, dim, one)]
        return found if 1 < len(found) == len(given) else []

    def _join(self, seen: Sequence[Attention]) -> None:
        self.count += bool(seen)
        first = 0
        for one in seen:
            one.block = one.block or (self.count, first)
            first += one.called_with

    def written(self, into: Tensor, value: Tensor) -> None:
        """`into`, a part of a buffer, was overwritten with a result."""
        found, base = self.of(value), into._base
        if found is None or base is None or into.dim() != base.dim() or into.stride() != base.stride():
            return
        parts = [axis for axis in range(base.dim()) if into.shape[axis] < base.shape[axis]]
        storage = _storage(base)
        if len(parts) != 1 or storage is None or into.shape[parts[0]] != found.called_with:
            return
        before = self.buffers.get(storage._cdata)
        if before is None or before[0].expired():
            self.count += 1
            before = self.buffers[storage._cdata] = StorageWeakRef(storage), self.count
        first = (into.storage_offset() - base.storage_offset()) // base.stride(parts[0])
        found.block = found.block or (before[1], int(first))


def _along_queries(part: Tensor, dim: int, attention: Attention) -> bool:
    """Whether an axis of a result is that of its queries: another one of as many entries may be as well, unless it is
    the last but one."""
    queries = attention.called_with
    if part.shape[dim] != queries:
        return False
    return list(part.shape).count(queries) == 1 or dim == part.dim() - 2


def _storage(tensor: object) -> torch.UntypedStorage | None:
    return None if not isinstance(tensor, Tensor) or tensor.is_nested else storage_of(tensor)
