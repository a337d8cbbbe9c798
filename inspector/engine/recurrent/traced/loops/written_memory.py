"""What was written in place in one iteration: of which states what lies in a tensor's memory was made.

A step may write 10,000 entries one by one: each write is looked at once, and not again for each that reads the memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.values import storage_of


class WrittenMemory:
    """States (bits) that the writes of iteration i were made of, as far as its operations were told in order."""

    def __init__(self, changed: Mapping[int, Sequence[tuple[int, int]]], i: int) -> None:
        self._storage: dict[int, int] = {}
        for storage, places in changed.items():
            for _, at in places[bisect_left(places, (i, -1)) : bisect_left(places, (i + 1, -1))]:
                self._storage[at] = storage
        self._bits: dict[int, list[int]] = {}
        self._all: dict[int, int] = {}
        self._anew: dict[int, tuple[int, int]] = {}

    def wrote(self, at: int, op: Op, bits: int) -> None:
        """Operation `at` was made of these states; whether it writes is known."""
        storage = self._storage.get(at)
        if storage is None:
            return
        self._bits.setdefault(storage, []).append(bits)
        self._all[storage] = self._all.get(storage, 0) | bits
        if op.replaces:
            self._anew[id(op.target)] = len(self._bits[storage]), bits

    def read(self, tensor: Tensor) -> tuple[bool, int]:
        """(whether a write replaced all of the tensor, the states of that write and of those since, or of all)."""
        if not self._all:
            return False, 0
        storage, anew = storage_of(tensor), self._anew.get(id(tensor))
        if anew is None:
            return False, self._all.get(storage, 0)
        known, bits = anew
        written = self._bits.get(storage, [])
        for more in written[known:]:
            bits |= more
        self._anew[id(tensor)] = len(written), bits
        return True, bits
