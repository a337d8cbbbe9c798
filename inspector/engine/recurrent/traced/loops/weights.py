"""Which weights an operation uses: the model's own tensors, views of them, and what is computed from them alone.

`W[l].T` is made anew at every step, and is the same weight each time: a value that is computed from weights alone is
identified by how it is computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence, Set
from functools import cached_property
from itertools import chain, count, pairwise

import numpy as np
from torch import Tensor
from torch.nn import Parameter
from torch.utils._pytree import tree_flatten

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, given_to, results_of
from inspector.engine.recurrent.traced.record.values import Numbers, region

NONE: frozenset[int] = frozenset()


class Weights:
    """Numbers of the weights that recorded calls read. `fixed`: ids of further tensors of the model (its buffers)."""

    def __init__(self, table: Table, fixed: Set[int] = NONE) -> None:
        self._table, self._fixed = table, fixed
        self._numbers: dict[Hashable, int] = defaultdict(count().__next__)

    def of(self, calls: Sequence[Sequence[int]]) -> list[frozenset[int]]:
        """The weights that each of these groups of calls reads."""
        ids, numbers = self._known
        if not len(ids):
            return [NONE for _ in calls]
        given = self._table.given
        flat = np.fromiter(chain.from_iterable(calls), np.int64)
        own = given.of(flat)
        n = np.minimum(np.searchsorted(ids, own), len(ids) - 1)
        is_one = ids[n] == own
        read = numbers[n][is_one]
        counts = np.concatenate(([0], np.cumsum(is_one)))[np.concatenate(([0], np.cumsum(given.count[flat])))]
        ends = counts[np.cumsum([0, *map(len, calls)])].tolist()
        known: dict[bytes, frozenset[int]] = {}
        found = []
        for start, stop in pairwise(ends):
            row = read[start:stop]
            key = row.tobytes()
            if key not in known:
                known[key] = frozenset(row.tolist())
            found.append(known[key])
        return found

    @cached_property
    def _known(self) -> tuple[Numbers, Numbers]:
        """Ids of all weights in ascending order, and the number of each."""
        found = self._outside()
        new = found
        while new:
            new = {number: key for number, key in self._made_of(found, new).items() if number not in found}
            found.update(new)
        ids = np.array(sorted(found), dtype=np.int64)
        return ids, np.array([found[number] for number in ids.tolist()], dtype=np.int64)

    def _outside(self) -> dict[int, int]:
        """Weights that no recorded call made: parameters, buffers, and views of them from before the run."""
        table = self._table
        ids, first = np.unique(table.given.ids, return_index=True)
        reader = np.repeat(np.arange(len(table)), table.given.count)[first[~np.isin(ids, table.made.ids)]]
        found: dict[int, int] = {}
        for n in set(reader.tolist()):
            for tensor in given_to(table.calls[n]):
                key = self._key(tensor)
                if key is not None:
                    found[id(tensor)] = self._numbers[key]
        return found

    def _key(self, tensor: Tensor) -> Hashable | None:
        if isinstance(tensor, Parameter) or id(tensor) in self._fixed:
            return "whole", id(tensor)
        base = tensor._base
        return ("part", region(tensor)) if isinstance(base, Parameter) or id(base) in self._fixed else None

    def _made_of(self, known: dict[int, int], new: dict[int, int]) -> dict[int, int]:
        """What calls make that read weights alone, one of these at least."""
        table = self._table
        reads = np.isin(table.given.ids, np.fromiter(new, np.int64, len(new)))
        total = np.concatenate(([0], np.cumsum(reads)))
        start, size, ids = table.given.start, table.given.count, table.given.ids
        found: dict[int, int] = {}
        for n in np.nonzero(total[start + size] > total[start])[0].tolist():
            read = ids[start[n] : start[n] + size[n]].tolist()
            if not all(one in known for one in read):
                continue
            call = table.calls[n]
            key = (call[0], _constants(call), *map(known.__getitem__, read))
            for k, out in enumerate(results_of(call[3])):
                found.setdefault(id(out), self._numbers[key, k])
        return found


def _constants(call: Call) -> Hashable:
    """The arguments that are no tensors, in order."""
    args, named = call[1], call[2]
    if not named and all(isinstance(one, (Tensor, int, str)) for one in args):
        return tuple(one for one in args if not isinstance(one, Tensor))
    return tuple(repr(one) for one in tree_flatten((args, named or {}))[0] if not isinstance(one, Tensor))
