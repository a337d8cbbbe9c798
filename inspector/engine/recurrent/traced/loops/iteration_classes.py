"""Iterations of a loop that ran the same operations: one of each class is analysed, and the result holds for all its
twins.

Two iterations are twins when they ran the same operations in the same order and every input of an operation came from
the same operation the same number of iterations before, or from outside the loop in both. Iterations of a loop that
writes into tensors in place have no twins, since their inputs may have changed; setting the items of an output that
nothing in the loop reads is allowed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from inspector.engine.recurrent.traced.loops.loop import Loop
from inspector.engine.recurrent.traced.record.op_table import Ragged
from inspector.engine.recurrent.traced.record.operation import given_to
from inspector.engine.recurrent.traced.record.values import Numbers, storage_of

Place = tuple[int, int]
"""(iteration, number of the operation in it)."""
Held = tuple[int, int]
"""The slots (bits) to which a value belongs, and the last iteration that may read it as such."""
MOST_LOOKED_AT = 16
"""Inputs of one operation that are compared with its outputs all together; the rest (a long list for `stack`) one by
one. It affects speed only."""


class Sources:
    """Id of a tensor → the place that made it."""

    def __init__(self, ids: Numbers, iterations: Numbers, at: Numbers) -> None:
        """Ids in ascending order."""
        self._ids: list[int] = ids.tolist()
        self._iterations, self._at = iterations, at
        self._places: dict[int, Place] | None = None

    def get(self, number: int) -> Place | None:
        """The place, or None for what is made outside the loop."""
        if self._places is not None:
            return self._places.get(number)
        n = bisect_left(self._ids, number)
        if n == len(self._ids) or self._ids[n] != number:
            return None
        return int(self._iterations[n]), int(self._at[n])

    def spread(self) -> None:
        """Build an index for fast look-up: worth its memory where most iterations are examined one by one."""
        places = zip(self._iterations.tolist(), self._at.tolist(), strict=True)
        self._places = dict(zip(self._ids, places, strict=True))

    def __getitem__(self, number: int) -> Place:
        found = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def __contains__(self, number: int) -> bool:
        return self.get(number) is not None


class Twins:
    """The iterations of a loop by the operations that they ran.

    Attributes:
        source: where tensors are made; changed: id of a storage → places that wrote into it, in order.
        first: for each iteration the first of its twins, which is the one that is analysed.
        members: first of some twins → all of them in order, itself included.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop, self.table = loop, loop.iterations.table
        numbers = loop.iterations.numbers
        sizes = np.array([len(own) for own in numbers])
        self.flat: Numbers = np.fromiter(chain.from_iterable(numbers), np.int64, int(sizes.sum()))
        self._begin = np.concatenate(([0], np.cumsum(sizes)))
        self._iteration = np.repeat(np.arange(len(sizes)), sizes)
        self._at = np.arange(len(self.flat)) - np.repeat(self._begin[:-1], sizes)
        labels = np.fromiter(chain.from_iterable(loop.iterations.labels), np.int64, len(self.flat))
        self._given = _flat(self.table.given, self.flat)
        self.changed: dict[int, list[Place]] = {}
        codes, passed = self._sources(labels)
        self.first: list[int] = list(range(len(sizes)))
        if self.changed and not self._only_filled(codes):
            self._group()
            return
        counts = self.table.given.count[self.flat]
        self._inputs, outputs = self._bounds(counts), self._bounds(self.table.made.count[self.flat])
        shapes = zip(map(id, loop.iterations.labels), np.diff(self._inputs), np.diff(outputs), strict=True)
        parts = (counts, self._begin), (codes, self._inputs), (passed, outputs)
        self._split(_members(_first_of(shapes)), *parts)

    def _bounds(self, counts: Numbers) -> Numbers:
        """Where the entries of each iteration begin, given the number of entries of each operation."""
        found: Numbers = np.concatenate(([0], np.cumsum(counts)))[self._begin]
        return found

    def _split(self, groups: Mapping[int, Numbers], *parts: tuple[npt.NDArray[Any], Numbers]) -> None:
        """Twins are those of a group that agree in all parts: values, and where those of each iteration begin."""
        first = np.arange(len(self.first))
        for members in groups.values():
            if len(members) > 1:
                rows = [values[_spans(begin, members)] for values, begin in parts]
                first[members] = members[_alike(np.concatenate(rows, axis=1))]
        self.first = first.tolist()
        self._group()

    def _sources(self, labels: Numbers) -> tuple[Numbers, Numbers]:
        """(for every input its source as a number, for every output whether it was an input)."""
        made = _flat(self.table.made, self.flat)
        passed = self._passed(made)
        setting, calls = Tensor.__setitem__, self.table.calls
        writing = {n for n, op in enumerate(self.flat.tolist()) if calls[op][0] is setting}
        writing |= {n for n in set(made[1][passed].tolist()) if self.table.op(int(self.flat[n])).in_place}
        self._writing = np.array(sorted(writing), dtype=np.int64)
        for n in self._writing.tolist():
            storage = storage_of(self.table.op(int(self.flat[n])).target)
            self.changed.setdefault(storage, []).append((int(self._iteration[n]), int(self._at[n])))
        makes = ~passed | np.isin(made[1], list(writing)) if writing else ~passed
        ids, first = np.unique(made[0][makes], return_index=True)
        maker, number = made[1][makes][first], made[2][makes][first]
        self.source = Sources(ids, self._iteration[maker], self._at[maker])
        given, reader, _ = self._given
        self._local = np.zeros(len(given), dtype=bool)
        if not len(ids):
            return np.full(len(given), -1), passed
        n = np.minimum(np.searchsorted(ids, given), len(ids) - 1)
        lag = self._iteration[reader] - self._iteration[maker[n]]
        most, kinds = len(self.loop.iterations) + 1, int(labels.max()) + 1
        code = ((lag + most) * kinds + labels[maker[n]]) * (int(number.max()) + 1) + number[n]
        self._local = (ids[n] == given) & (lag == 0) & (self._at[maker[n]] < self._at[reader])
        return np.where(ids[n] == given, code, -1), passed

    def _only_filled(self, codes: Numbers) -> bool:
        """True where items are set of tensors from outside, and nothing in the loop reads their memory: outputs."""
        calls, (given, reader, number) = self.table.calls, self._given
        target = np.isin(reader, self._writing) & (number == 0)
        setting = all(calls[n][0] is Tensor.__setitem__ for n in self.flat[self._writing].tolist())
        if not setting or (codes[target] != -1).any():
            return False
        read = np.nonzero((codes == -1) & ~target)[0]
        first = read[np.unique(given[read], return_index=True)[1]]
        read_tensors = (given_to(calls[self.flat[reader[n]]])[number[n]] for n in first)
        return all(storage_of(tensor) not in self.changed for tensor in read_tensors)

    def _passed(self, made: tuple[Numbers, Numbers, Numbers]) -> Numbers:
        """Which outputs are tensors that the operation was given: dropout in eval mode makes nothing."""
        given, count = self.table.given, self.table.given.count[self.flat]
        ids, maker, _ = made
        passed = np.zeros(len(ids), dtype=bool)
        start = given.start[self.flat]
        for k in range(min(int(count.max(initial=0)), MOST_LOOKED_AT)):
            has = count[maker] > k
            passed[has] |= given.ids[start[maker[has]] + k] == ids[has]
        for n in np.nonzero(count[maker] > MOST_LOOKED_AT)[0]:
            own = start[maker[n]]
            passed[n] |= ids[n] in given.ids[own : own + count[maker[n]]]
        return passed

    def _group(self) -> None:
        self.members = _members(self.first)
        if len(self.members) * 4 > len(self.first):
            self.source.spread()

    def refine(self, held: Mapping[int, Held], rows: Sequence[Numbers]) -> None:
        """Twins must also agree in the slots of values from earlier iterations, and in these rows (t,)."""
        if len(self.members) == len(self.first) or not held:
            return
        ids = np.array(sorted(held), dtype=np.int64)
        bits, last = np.array([held[number] for number in ids.tolist()], dtype=np.int64).T
        given, reader, _ = self._given
        n = np.minimum(np.searchsorted(ids, given), len(ids) - 1)
        known = (ids[n] == given) & ~self._local & (self._iteration[reader] <= last[n])
        more = np.stack(rows, 1)
        begin = np.arange(len(more) + 1) * more.shape[1]
        self._split(self.members, (np.where(known, bits[n], 0), self._inputs), (more.ravel(), begin))

    def readers(self, tensor: Tensor) -> list[tuple[int, int, int]]:
        """(iteration, operation, number of its input) of all operations that read a tensor."""
        given, reader, number = self._given
        found = np.nonzero(given == id(tensor))[0]
        at = reader[found]
        return list(zip(self._iteration[at].tolist(), self._at[at].tolist(), number[found].tolist(), strict=True))

    def give(self, place: Place, k: int, tensor: Tensor) -> None:
        """Replace input k of an operation by another tensor from outside the loop."""
        n = int(self._begin[place[0]]) + place[1]
        self.table.give(int(self.flat[n]), k, tensor)
        given, reader, number = self._given
        given[(reader == n) & (number == k)] = id(tensor)

    def part(self) -> None:
        """No iteration has twins from now on."""
        self.first = list(range(len(self.first)))
        self._group()

    def used(self, ids: Set[int]) -> list[Tensor]:
        """Those of these tensors that operations of the loop read."""
        given, reader, number = self._given
        places = np.nonzero(np.isin(given, np.fromiter(ids, np.int64, len(ids))))[0]
        first = places[np.unique(given[places], return_index=True)[1]]
        return [self.table.op(int(self.flat[reader[n]])).inputs[number[n]] for n in first.tolist()]

    def outside(self) -> Set[int]:
        """The ids of all that operations of the loop are given and none of them makes."""
        made = _flat(self.table.made, self.flat)[0]
        found: set[int] = set(np.setdiff1d(self._given[0], made).tolist())
        return found

    def calls(self, members: Numbers, j: int) -> Numbers:
        """Numbers of the calls that are operation j of these iterations."""
        found: Numbers = self.flat[self._begin[members] + j]
        return found

    def results(self, members: Numbers, j: int, k: int) -> list[Tensor]:
        """Output k of operation j of twins."""
        return self.table.results(self.calls(members, j), k)

    def made(self, members: Numbers, j: int, k: int) -> Numbers:
        """The ids of `results`."""
        return _column(self.table.made, self.calls(members, j), k)

    def given(self, members: Numbers, j: int, k: int) -> Numbers:
        """The ids of input k of operation j of twins."""
        return _column(self.table.given, self.calls(members, j), k)

    def inputs(self, members: Numbers, j: int, k: int) -> list[Tensor]:
        """Input k of operation j of twins."""
        return self.table.inputs(self.calls(members, j), k)


def _first_of(keys: Iterable[Hashable]) -> list[int]:
    """For each key the number of the first that is equal."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(key, n) for n, key in enumerate(keys)]


def _members(first: Sequence[int]) -> dict[int, Numbers]:
    found: dict[int, list[int]] = {}
    for i, one in enumerate(first):
        found.setdefault(one, []).append(i)
    return {one: np.array(own) for one, own in found.items()}


def _spans(begin: Numbers, members: Numbers) -> Numbers:
    """Where the values of each of these iterations are, (m, n): all have as many as the first."""
    width = begin[members[0] + 1] - begin[members[0]]
    found: Numbers = begin[members][:, None] + np.arange(width)
    return found


def _alike(rows: Numbers) -> Numbers:
    """For each row the number of the first that is equal; most are equal to the second."""
    found = np.arange(len(rows))
    usual = (rows == rows[1]).all(1)
    found[usual] = np.argmax(usual)
    others = np.nonzero(~usual)[0]
    first = _first_of(rows[n].tobytes() for n in others)
    found[others] = others[first]
    return found


def _column(ragged: Ragged, calls: Numbers, k: int) -> Numbers:
    found: Numbers = ragged.ids[ragged.start[calls] + k]
    return found


def _flat(ragged: Ragged, calls: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """(ids of all these calls, which of the calls each belongs to, and its position in it)."""
    count = ragged.count[calls]
    owner = np.repeat(np.arange(len(calls)), count)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return ragged.ids[ragged.start[calls][owner] + number], owner, number
