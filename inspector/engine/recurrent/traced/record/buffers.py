"""States that a user stores in one preallocated tensor: `H[:, t + 1] = f(H[:, t])`, `state.copy_(new)`.

A read from a place of such a buffer returns the last value written there: the reading operations are removed and
replaced by that value. A buffer whose places are read in any other way while it is filled is left unchanged.
"""

from __future__ import annotations

import math
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
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import Region, region, storage_of

WRITES = frozenset({Tensor.__setitem__, Tensor.copy_})
"""Checked for every call by the function alone: nothing else is examined where no buffer is read."""
MOST_ADDRESSES = 1 << 22
"""Entries of all places up to which each is examined, where places are unevenly spaced: 32 MB of addresses.
Counter-example: a longer buffer with uneven places that do not overlap is not followed, and that is reported."""
COPIES, SLICES, MIXED = "copy", "slices", "mixed"
"""Keys of writes that are not only numbers."""


def resolved(table: Table) -> tuple[Table, bool]:
    """The calls without those that only put values into buffers and take them out again.

    True where a buffer that is filled by numbers (`H[:, t]`) and read meanwhile cannot be followed. Nothing is reported
    for one that is filled by slices: a cache of keys is, and it is not a state.
    """
    if not _any_is_read(table):
        return table, False
    ops = table.ops()
    every = _buffers(ops)
    found = {storage: buffer for storage, buffer in every.items() if buffer.read and buffer.offsets}
    good = {storage: buffer for storage, buffer in found.items() if buffer.whole and buffer.apart()}
    left = _Rewriting(good, every).all(ops) if good else None
    lost = any(buffer.key != SLICES for storage, buffer in found.items() if left is None or storage not in good)
    return (table if left is None else table.replaced(left)), lost


def _any_is_read(table: Table) -> bool:
    """Whether a tensor that is written place by place is read before the last write;
    an output that is only filled is not."""
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
        key: the key of every write with its numbers left out (a tuple), or the kinds of its keys.
        shape, stride: of every place; offsets: where each write went.
        last: number of the last operation that writes.
        read: it is read; viewed: a view of a part of a place is taken; whole: it is read place by place only.
    """

    key: Hashable
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    last: int = -1
    offsets: list[int] = field(default_factory=list)
    read: bool = False
    viewed: bool = False
    whole: bool = True

    def is_place(self, tensor: Tensor) -> bool:
        """True for a tensor that lies in memory as the places do."""
        return (tuple(tensor.shape), tensor.stride()) == (self.shape, self.stride)

    def apart(self) -> bool:
        """True when no two places that were written share memory, or all are one and the same.

        Keys that differ in their numbers only do not overlap. A view of a part of a place shows the last value written
        there, so then no place may be written twice.
        """
        starts = sorted(set(self.offsets))
        if self.viewed and len(starts) < len(self.offsets):
            return False
        return isinstance(self.key, tuple) or _clear(starts, self.shape, self.stride)


def _clear(starts: Sequence[int], shape: Sequence[int], stride: Sequence[int]) -> bool:
    """True when tensors of one shape and stride that begin at these different places share no element."""
    if len({b - a for a, b in pairwise(starts)}) <= 1:  # then each distance is one from the first
        return not any(_overlap(at - starts[0], shape, stride) for at in starts[1:])
    count = math.prod(shape)
    if len(starts) * count > MOST_ADDRESSES:
        return False
    inside = np.zeros(1, dtype=np.int64)
    for size, step in zip(shape, stride, strict=True):
        inside = np.add.outer(inside, np.arange(size) * step).ravel()
    every = np.add.outer(np.array(starts), inside)
    return bool(len(np.unique(every)) == every.size)


def _buffers(ops: Sequence[Op]) -> dict[int, Buffer]:
    """Storages that are written to, and how they are read in between."""
    found: dict[int, Buffer] = {}
    tracked: dict[int, Buffer] = {}
    for n, op in enumerate(ops):
        if not op.in_place:
            continue
        place, key = _written(op), _key(op)
        known = found.setdefault(storage_of(op.target), Buffer(key, *(place[2:] if place else ((), ()))))
        known.last = n
        known.key = known.key if known.key == key else SLICES if SLICES in (known.key, key) else MIXED
        if place is None or (known.shape, known.stride) != place[2:]:
            known.whole = False
        else:
            known.offsets.append(place[1])
        tracked[id(op.target)] = known
        if op.target._base is not None:
            tracked[id(op.target._base)] = known
    for n, op in enumerate(ops):
        for given in op.inputs:
            buffer = tracked.get(id(given))
            if buffer is not None and buffer.whole and n <= buffer.last:
                _judge(buffer, op, given, tracked)
    return found


def _judge(buffer: Buffer, op: Op, given: Tensor, tracked: dict[int, Buffer]) -> None:
    """Note how an operation reads a buffer; stop following it where that is not one of the written places."""
    if op.traits.kind is Kind.QUESTION or (op.in_place and given is op.target):
        return
    if _points(op, buffer):
        tracked.update((id(one), buffer) for one in op.outputs)
        return
    buffer.read = True
    buffer.whole &= buffer.is_place(given)
    buffer.viewed |= any(storage_of(out) == storage_of(given) for out in op.outputs)


def _points(op: Op, buffer: Buffer) -> bool:
    """True where an operation only selects from a buffer: `H[t]`, `H.unbind()`, or `H.mT` before a selection.

    A view of a part of a place (`H[t][:, :2]`) computes something from it.
    """
    given, kinds = op.inputs[0], (Kind.PIECE, Kind.LAYOUT, Kind.TURN)
    if op.traits.kind not in kinds or any(storage_of(out) != storage_of(given) for out in op.outputs):
        return False
    return not buffer.is_place(given) or all(map(buffer.is_place, op.outputs))


class _Rewriting:
    """Goes through the operations in order and tracks the value of every place."""

    def __init__(self, buffers: dict[int, Buffer], written: Collection[int]) -> None:
        self.buffers, self.written = buffers, written
        self.held: dict[Region, Tensor] = {}
        self.early: dict[Region, Tensor] = {}
        """Places whose first value was used before anything was written there, and the tensor that represents it."""
        self.same: dict[int, Tensor] = {}
        """Id of a copy that is only read → what it is a copy of."""

    def all(self, ops: Sequence[Op]) -> dict[int, Given] | None:
        """Numbers of the operations that remain, with their arguments; None where one has been overwritten."""
        found: dict[int, Given] = {}
        for n, op in enumerate(ops):
            buffer = self.buffers.get(storage_of(op.inputs[0])) if op.inputs else None
            if buffer is not None and n <= buffer.last:
                if op.in_place:
                    place = _written(op)
                    if place is None or place in self.early:
                        return None
                    self.held[place] = self._value(op.inputs[1], n)
                    continue
                if _points(op, buffer):
                    continue
                if op.traits.name == "clone" and storage_of(op.outputs[0]) not in self.written:
                    if self._keeps(op, buffer):
                        found[n] = op.args, op.kwargs
                        continue
                    self.same[id(op.outputs[0])] = self._value(op.inputs[0], n)
                    continue
            found[n] = self._given(op, n)
        return found

    def _keeps(self, op: Op, buffer: Buffer) -> bool:
        """True for a copy of a place's first value that is overwritten later: the copy represents it from now on.

        A buffer of one place is a variable that is changed in place, and rejected as such.
        """
        place = region(op.inputs[0])
        if place in self.held or place in self.early or place[1] not in buffer.offsets or len(set(buffer.offsets)) == 1:
            return False
        self.held[place] = op.outputs[0]
        return True

    def _given(self, op: Op, n: int) -> Given:
        """The arguments with values instead of reads from buffers."""
        changed = {id(given): self._value(given, n) for given in op.inputs}
        if all(changed[id(given)] is given for given in op.inputs):
            return op.args, op.kwargs
        found: Given = tree_map_only(Tensor, lambda given: changed[id(given)], (op.args, op.kwargs))
        return found

    def _value(self, tensor: Tensor, n: int) -> Tensor:
        if id(tensor) in self.same:
            return self.same[id(tensor)]
        buffer = self.buffers.get(storage_of(tensor))
        if buffer is None or n > buffer.last:
            return tensor
        place = region(tensor)
        return self.held[place] if place in self.held else self.early.setdefault(place, tensor)


def _overlap(distance: int, shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two tensors of one shape and stride, this far apart in memory, share an element (nested strides)."""
    axes = sorted(((step, size) for size, step in zip(shape, stride, strict=True) if size > 1), reverse=True)
    left = {distance}
    for step, size in axes:
        left = {d - k * step for d in left for k in (d // step, -(-d // step)) if abs(k) < size} if step else left
    return 0 in left


def _written(op: Op) -> Region | None:
    """The place that an operation writes a whole tensor of its own shape to; None for any other kind of write."""
    if len(op.inputs) != 2 or op.inputs[1].dtype != op.inputs[0].dtype:
        return None
    target, value = op.inputs
    if op.traits.name == "setitem" and len(op.args) == 3 and op.args[2] is value and _is_plain(op.args[1]):
        with torch.no_grad():
            target = target.detach()[op.args[1]]
    elif op.traits.name != "copy":
        return None
    return region(target) if target.shape == value.shape else None


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_plain(key: Any) -> bool:
    """True for a key of numbers and slices: what it means is a view."""
    return all(type(one) in (int, slice) or one is Ellipsis for one in _keys(key))


def _key(op: Op) -> Hashable:
    """The tensor that is written into and the key without its numbers, where that is numbers and whole axes."""
    if op.traits.name != "setitem":
        return COPIES
    keys = _keys(op.args[1])
    if not all(type(one) is int or one is Ellipsis or (type(one) is slice and one == slice(None)) for one in keys):
        return SLICES
    return id(op.target), *("number" if type(one) is int else str(one) for one in keys)
