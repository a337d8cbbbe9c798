"""The operations of one iteration that lead to a new state, and which of them read a tensor.

Who reads a tensor is asked for each operation. A step may have 10,000 of them: they are looked through once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Op

Ops = Sequence[tuple[object, Op]]


class Near:
    """Operations that lead to a new state (`numbers`), in order, among all of their iteration (`ops`)."""

    def __init__(self, ops: Ops, numbers: Collection[int]) -> None:
        self.ops, self.numbers = ops, sorted(numbers)
        self._readers: dict[int, list[int]] = {}
        self._returning: dict[int, list[int]] | None = None
        for k in self.numbers:
            _note(self._readers, k, ops[k][1].inputs)

    def readers(self, tensor: Tensor, after: int) -> list[int]:
        """These operations, behind number `after`, that are given the tensor."""
        return _behind(self._readers, tensor, after)

    def returning(self, tensor: Tensor, after: int) -> list[int]:
        """All operations of the iteration, behind number `after`, that return the tensor."""
        if self._returning is None:
            self._returning = {}
            for k, (_, op) in enumerate(self.ops):
                _note(self._returning, k, op.outputs)
        return _behind(self._returning, tensor, after)


class Onwards(Iterator[int]):
    """Operations that read a tensor, in order; `follow` adds those that read what was made of it."""

    def __init__(self, near: Near, tensor: Tensor, after: int) -> None:
        self._near, self._at = near, after
        self._waiting: list[int] = []
        self._known: set[int] = set()
        self.follow([tensor])

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """What reads these, behind the operation that came last, comes too."""
        for tensor in tensors:
            for k in self._near.readers(tensor, self._at) if id(tensor) not in self._known else ():
                heappush(self._waiting, k)
            self._known.add(id(tensor))

    def __next__(self) -> int:
        while self._waiting:
            k = heappop(self._waiting)
            if k > self._at:
                self._at = k
                return k
        raise StopIteration


def _note(found: dict[int, list[int]], k: int, tensors: Iterable[Tensor]) -> None:
    for key in set(map(id, tensors)):
        found.setdefault(key, []).append(k)


def _behind(found: dict[int, list[int]], tensor: Tensor, after: int) -> list[int]:
    numbers = found.get(id(tensor), [])
    return numbers[bisect_right(numbers, after) :]
