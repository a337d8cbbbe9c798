"""States that a user keeps in one preallocated tensor: `H[:, t + 1] = f(H[:, t])`, `state.copy_(new)`.

What is read from a place of such a buffer is what was last written there: the reading operations are taken out, and the
value takes their place. A buffer whose places are read in any other way while it is filled is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.record.op_table import Given, Table
from inspector.engine.recurrent.traced.record.operation import Op

Region = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Storage, offset, shape, strides: where in memory a tensor is."""
WRITES = frozenset({Tensor.__setitem__, Tensor.copy_})
READS = frozenset({"__getitem__", "select", "narrow", "squeeze", "unbind"})
ASKS = frozenset({"__get__", "size", "dim", "__len__", "shape", "stride", "data_ptr", "numel"})
"""They look at a tensor and not at its values."""


def resolved(table: Table) -> tuple[Table, bool]:
    """The calls without those that only put values into buffers and take them out again.

    True where a buffer that is read while it is filled cannot be followed.
    """
    if not _any_is_read(table):
        return table, False
    ops = table.ops()
    every = _buffers(ops)
    found = {storage: buffer for storage, buffer in every.items() if buffer.read and buffer.offsets}
    good = {storage: buffer for storage, buffer in found.items() if buffer.whole and buffer.apart()}
    left = _Rewriting(good, every).all(ops) if good else None
    return (table if left is None else table.replaced(left)), len(good) < len(found)


def _any_is_read(table: Table) -> bool:
    """Whether what is written to place by place is read before the last write; an output that is filled is not."""
    writes = np.array([n for n, call in enumerate(table.calls) if call[0] in WRITES], dtype=np.int64)
    if not len(writes):
        return False
    targets = [table.calls[n][1][0] for n in writes.tolist()]
    ids = {id(one) for target in targets for one in (target, target._base) if one is not None}
    given = table.given
    read = np.isin(given.ids, np.fromiter(ids, np.int64, len(ids)))
    read[given.start[writes]] = False
    return bool(read[: given.start[writes[-1]]].any())


@dataclass(slots=True)
class Buffer:
    """One tensor that is written to place by place.

    Attributes:
        pattern: what all keys have in common; shape, stride: of every place.
        last: number of the last operation that writes; offsets: of all places.
        read: one of the places is read; whole: nothing else was done to the tensor.
    """

    pattern: Hashable
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    last: int = -1
    offsets: list[int] = field(default_factory=list)
    read: bool = False
    whole: bool = True

    def apart(self) -> bool:
        """True when no two places that were written share memory, or all are one and the same.

        Keys of one pattern are apart. Places without a key have to lie in equal distances, each clear of the first.
        """
        if self.pattern != "copy_":
            return True
        starts = sorted(set(self.offsets))
        steps = {b - a for a, b in pairwise(starts)}
        return len(steps) <= 1 and not any(_overlap(at - starts[0], self.shape, self.stride) for at in starts[1:])


def _buffers(ops: Sequence[Op]) -> dict[int, Buffer]:
    """Storages that are written to and read in a way that can be followed."""
    found: dict[int, Buffer] = {}
    tracked: dict[int, Buffer] = {}
    for n, op in enumerate(ops):
        if not op.in_place:
            continue
        place = _written(op)
        known = found.setdefault(_storage(op.inputs[0]), Buffer(_pattern(op), *(place[2:] if place else ((), ()))))
        known.last = n
        if place is None or (known.pattern, known.shape, known.stride) != (_pattern(op), *place[2:]):
            known.whole = False
        else:
            known.offsets.append(place[1])
        tracked[id(op.inputs[0])] = known
        if op.inputs[0]._base is not None:
            tracked[id(op.inputs[0]._base)] = known
    for n, op in enumerate(ops):
        for given in op.inputs:
            buffer = tracked.get(id(given))
            if buffer is not None and buffer.whole and n <= buffer.last:
                _judge(buffer, op, given, tracked)
    return found


def _judge(buffer: Buffer, op: Op, given: Tensor, tracked: dict[int, Buffer]) -> None:
    """Note how an operation reads a buffer; give it up where that is not a place such as those that are written."""
    if op.name in ASKS or (op.in_place and given is op.inputs[0]):
        return
    storage = _storage(given)
    views = [out for out in op.outputs if _storage(out) == storage] if op.name in READS else []
    for one in views or [given]:
        tracked[id(one)] = buffer
        buffer.read = True
        buffer.whole &= (tuple(one.shape), one.stride()) == (buffer.shape, buffer.stride)


class _Rewriting:
    """Goes through the operations in order and keeps what every place holds."""

    def __init__(self, buffers: dict[int, Buffer], written: Collection[int]) -> None:
        self.buffers, self.written = buffers, written
        self.held: dict[Region, Tensor] = {}
        self.early: set[Region] = set()
        """Places whose first value was used before anything was written there."""
        self.same: dict[int, Tensor] = {}
        """Id of a copy that is only read → what it is a copy of."""

    def all(self, ops: Sequence[Op]) -> dict[int, Given] | None:
        """Numbers of the operations that are left, with what they are given; None where that has been overwritten."""
        found: dict[int, Given] = {}
        for n, op in enumerate(ops):
            buffer = self.buffers.get(_storage(op.inputs[0])) if op.inputs else None
            if buffer is not None and n <= buffer.last:
                if op.in_place:
                    place = _written(op)
                    if place is None or place in self.early:
                        return None
                    self.held[place] = self._value(op.inputs[1], n)
                    continue
                if op.name in READS:
                    continue
                if op.name == "clone" and _storage(op.outputs[0]) not in self.written:
                    self.same[id(op.outputs[0])] = self._value(op.inputs[0], n)
                    continue
            found[n] = self._given(op, n)
        return found

    def _given(self, op: Op, n: int) -> Given:
        """The arguments with values in the place of what was read from buffers."""
        changed = {id(given): self._value(given, n) for given in op.inputs}
        if all(changed[id(given)] is given for given in op.inputs):
            return op.args, op.kwargs
        found: Given = tree_map_only(Tensor, lambda given: changed[id(given)], (op.args, op.kwargs))
        return found

    def _value(self, tensor: Tensor, n: int) -> Tensor:
        if id(tensor) in self.same:
            return self.same[id(tensor)]
        buffer = self.buffers.get(_storage(tensor))
        if buffer is None or n > buffer.last:
            return tensor
        place = region(tensor)
        if place not in self.held:
            self.early.add(place)
            return tensor
        return self.held[place]


def region(tensor: Tensor) -> Region:
    """Where a tensor is in memory."""
    return _storage(tensor), int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()


def _overlap(distance: int, shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two tensors of one shape and stride, this far apart in memory, share an element (nested strides)."""
    axes = sorted(((step, size) for size, step in zip(shape, stride, strict=True) if size > 1), reverse=True)
    left = {distance}
    for step, size in axes:
        left = {d - k * step for d in left for k in (d // step, -(-d // step)) if abs(k) < size} if step else left
    return 0 in left


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _written(op: Op) -> Region | None:
    """The place that an operation writes a whole tensor of its own shape to; None for any other kind of writing."""
    if len(op.inputs) != 2 or op.inputs[1].dtype != op.inputs[0].dtype:
        return None
    target, value = op.inputs
    if op.name == "__setitem__" and len(op.args) == 3 and op.args[2] is value and _pattern(op):
        with torch.no_grad():
            target = target.detach()[op.args[1]]
    elif op.name != "copy_":
        return None
    return region(target) if target.shape == value.shape else None


def _pattern(op: Op) -> Hashable:
    """The key with its numbers left out: keys of one pattern that differ mean places that do not overlap."""
    if op.name != "__setitem__":
        return op.name
    keys: Any = op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],)
    if not all(type(key) in (int, slice) or key is Ellipsis for key in keys):
        return ()
    return tuple("number" if type(key) is int else str(key) for key in keys)
