"""The recorded calls as columns: the place in the code, the inputs and the outputs of each, as numbers.

A loop makes the same few calls repeatedly. Calls from one place of the code are examined together, so that the work for
all of them is a few list comprehensions; only where they differ in shape is each examined alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from operator import itemgetter
from types import FrameType
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from inspector.engine.recurrent.traced.record.columns import (
    Uneven,
    all_same,
    argument_leaves,
    constant,
    result_leaves,
    tensor_columns,
)
from inspector.engine.recurrent.traced.record.operation import Call, Op, Where, given_to, name_of, op_of, results_of
from inspector.engine.recurrent.traced.record.owners import Owners
from inspector.engine.recurrent.traced.record.values import Numbers, has_parameter, ids_of, is_parameter

Key = tuple[Hashable, ...]
Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by position, and those by name."""
FEW = 8
"""Number of calls from one place that is not worth examining together: columns cost as much as about eight calls. It
affects speed only."""


@dataclass(slots=True)
class Ragged:
    """For every call some ids: those of call n are ids[start[n] : start[n] + count[n]]."""

    ids: Numbers
    start: Numbers
    count: Numbers

    def of(self, calls: Numbers) -> Numbers:
        """All ids of these calls."""
        count = self.count[calls]
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        found: Numbers = self.ids[np.repeat(self.start[calls], count) + within]
        return found


class Table:
    """All calls of a forward pass. They are numbered in order; `wheres` numbers the frames in which they are."""

    def __init__(
        self,
        calls: list[Call],
        random: Mapping[int, Tensor] | None = None,
        quiet: Set[int] = frozenset(),
        owners: Owners | None = None,
    ) -> None:
        self.calls, self._random, self._quiet, self.owners = calls, random or {}, quiet, owners or Owners()
        self._own: dict[int, Tensor] = {}
        self._given: list[tuple[int, int, Call, tuple[tuple[Any, ...], dict[str, Any], tuple[Tensor, ...]]]] = []
        self._ops: dict[int, Op] = {}
        self._keys: dict[tuple[int, bool], tuple[dict[int, int], dict[Key, int]]] = {}
        self._frames: dict[int, list[FrameType | None]] = {}
        self._owners: dict[int, Any] = {}
        wheres = list(map(itemgetter(4), calls))
        known: dict[int, int] = defaultdict(count().__next__)
        self.where = list(map(known.__getitem__, map(id, wheres)))
        self.wheres: list[Where] = list({id(where): where for where in wheres}.values())

    def __len__(self) -> int:
        return len(self.calls)

    def op(self, n: int) -> Op:
        """Call n as an Op; always the same object."""
        found = self._ops.get(n)
        if found is None:
            call = self.calls[n]
            found = op_of(call, self._owner(call[4]), self._random.get(n), quiet=n in self._quiet)
            self._ops[n] = found
        return found

    def ops(self) -> list[Op]:
        """All calls as Ops."""
        return [self.op(n) for n in range(len(self))]

    @cached_property
    def _makers(self) -> tuple[Numbers, Numbers]:
        """Ids of all that was returned in ascending order, and the call that returned each, the first one first."""
        order = np.argsort(self.made.ids, kind="stable")
        return self.made.ids[order], np.repeat(np.arange(len(self)), self.made.count)[order]

    def maker(self, number: int) -> int | None:
        """The first call that returned the tensor of this id, or None."""
        ids, calls = self._makers
        n = int(np.searchsorted(ids, number))
        return int(calls[n]) if n < len(ids) and ids[n] == number else None

    def knows(self, number: int) -> bool:
        """True for the id of a tensor that one of the calls returned, or that `give` put in place of one."""
        return number in self._own or self.maker(number) is not None

    def give(self, n: int, k: int, tensor: Tensor) -> None:
        """Replace input k of call n by another tensor."""
        op, call = self.op(n), self.calls[n]
        self._given.append((n, k, call, (op.args, op.kwargs, op.inputs)))
        leaves, spec = tree_flatten((op.args, op.kwargs))
        at = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)][k]
        leaves[at] = tensor
        op.args, op.kwargs = tree_unflatten(leaves, spec)
        op.inputs = (*op.inputs[:k], tensor, *op.inputs[k + 1 :])
        self.calls[n] = (call[0], op.args, op.kwargs or None, *call[3:])
        self.given.ids[self.given.start[n] + k] = id(tensor)
        self._own[id(tensor)] = tensor

    @property
    def changes(self) -> int:
        """How often an input was replaced."""
        return len(self._given)

    def undo(self, changes: int) -> None:
        """Put back all inputs that were replaced after so many changes: those calls turned out to be no loop."""
        while len(self._given) > changes:
            n, k, call, (args, kwargs, inputs) = self._given.pop()
            op = self.op(n)
            op.args, op.kwargs, op.inputs = args, kwargs, inputs
            self.calls[n] = call
            self.given.ids[self.given.start[n] + k] = id(inputs[k])

    def replaced(self, given: Mapping[int, Given]) -> Table:
        """These calls only, with other arguments (positional ones, those by name)."""
        kept = {old: new for new, old in enumerate(given)}
        calls = [(self.calls[n][0], args, kwargs or None, *self.calls[n][3:]) for n, (args, kwargs) in given.items()]
        random = {kept[n]: state for n, state in self._random.items() if n in kept}
        return Table(calls, random, {kept[n] for n in self._quiet if n in kept}, self.owners)

    def with_calls(self, instead: Mapping[int, Call], before: Mapping[int, Sequence[Call]]) -> Table:
        """All calls, some replaced by others that return the same, and some with others just before them."""
        calls: list[Call] = []
        at: dict[int, int] = {}
        for n, call in enumerate(self.calls):
            calls += before.get(n, ())
            at[n] = len(calls)
            calls.append(instead.get(n, call))
        random = {at[n]: state for n, state in self._random.items()}
        return Table(calls, random, {at[n] for n in self._quiet}, self.owners)

    def plain(self, numbers: Numbers) -> bool:
        """True where none of these calls drew random numbers or ran inside a function of the user's own."""
        if not self._random and not self._quiet:
            return True
        return not any(n in self._random or (n in self._quiet and self._custom(n)) for n in numbers.tolist())

    def off(self, n: int) -> bool:
        """Whether autograd was off at a call although it was on when the run began."""
        return n in self._quiet

    def without_gradient(self, n: int) -> bool:
        """Whether a call ran with autograd off, outside of a function of the user's own."""
        return n in self._quiet and not self._custom(n)

    def quiet(self, numbers: Numbers) -> bool:
        """Whether autograd was off at one of these calls although it was on when the run began."""
        return bool(self._quiet) and not self._quiet.isdisjoint(numbers.tolist())

    def _custom(self, n: int) -> bool:
        return any(one.requires_grad for one in results_of(self.calls[n][3]))

    def results(self, numbers: Sequence[int] | Numbers, k: int) -> list[Tensor]:
        """Tensor k that each of these calls returned."""
        outs = [self.calls[n][3] for n in numbers]
        return [out if isinstance(out, Tensor) else results_of(out)[k] for out in outs]

    def inputs(self, numbers: Numbers, k: int) -> list[Tensor]:
        """Input k of each of these calls."""
        wanted = self.given.ids[self.given.start[numbers] + k]
        together = list(map(self.calls.__getitem__, numbers.tolist()))
        place = next((n for n, value in enumerate(together[0][1]) if id(value) == wanted[0]), None)
        try:
            column = tensor_columns(argument_leaves(together))[k] if place is None else [c[1][place] for c in together]
        except (Uneven, IndexError):  # nested in different ways, or not as many
            column = []
        if len(column) == len(numbers) and np.array_equal(ids_of(column), wanted):
            return list(column)
        return [self.op(n).inputs[k] for n in numbers.tolist()]

    def _owner(self, where: Where) -> Any:
        if id(where) not in self._owners:
            self._owners[id(where)] = self.owners.innermost(where)
        return self._owners[id(where)]

    def _code_of(self, where: Where) -> Key:
        outer, frame = where
        return (*((above.f_code, at) for above, at in outer), frame.f_code, id(self._owner(where)))

    @cached_property
    def sites(self) -> list[int]:
        """Equal for calls of one function from one place of the code and one object, its callers' places included."""
        codes: dict[Key, int] = defaultdict(count().__next__)
        code = [codes[self._code_of(where)] for where in self.wheres]
        known: dict[tuple[int, int, int], int] = defaultdict(count().__next__)
        functions, instructions = map(itemgetter(0), self.calls), map(itemgetter(5), self.calls)
        places = zip(map(code.__getitem__, self.where), instructions, map(id, functions), strict=True)
        return list(map(known.__getitem__, places))

    @cached_property
    def groups(self) -> list[Numbers]:
        """Numbers of the calls of each site, in order."""
        sites = np.array(self.sites, dtype=np.int64)
        if not len(sites):
            return []
        order = np.argsort(sites, kind="stable")
        return np.split(order, np.cumsum(np.bincount(sites))[:-1])

    @cached_property
    def _columns(self) -> tuple[Ragged, Ragged, list[int], dict[int, tuple[int, ...]], set[int]]:
        given, made = _Filling(len(self)), _Filling(len(self))
        weights: dict[int, tuple[int, ...]] = {}
        fixed: set[int] = set()
        bodies = list(self.sites)
        own: dict[tuple[int, tuple[int, ...]], int] = defaultdict(count(len(self)).__next__)
        for numbers in self.groups:
            plain = numbers.tolist()
            together = list(map(self.calls.__getitem__, plain))
            try:
                if len(together) < FEW:
                    raise Uneven
                arguments = argument_leaves(together)
                columns, outs = tensor_columns(arguments), tensor_columns(result_leaves(together))
                if constant(arguments):
                    fixed.add(bodies[plain[0]])
                used = [column for column in columns if has_parameter(column)]
                given.together(numbers, columns)
                made.together(numbers, outs)
                if not used:
                    continue
                if all(all_same(column) for column in used):
                    weights[bodies[plain[0]]] = tuple(id(column[0]) for column in used)
                    continue
            except Uneven:
                for n, call in zip(plain, together, strict=True):
                    given.alone(n, given_to(call))
                    made.alone(n, results_of(call[3]))
            for n, call in zip(plain, together, strict=True):
                parameters = tuple(id(tensor) for tensor in given_to(call) if is_parameter(tensor))
                if parameters:
                    bodies[n] = own[bodies[n], parameters]
                    weights[bodies[n]] = parameters
        return given.ragged(), made.ragged(), bodies, weights, fixed

    @property
    def given(self) -> Ragged:
        """Ids of the input tensors of each call."""
        return self._columns[0]

    @property
    def made(self) -> Ragged:
        """Ids of the tensors that each call returned."""
        return self._columns[1]

    @property
    def bodies(self) -> list[int]:
        """As `sites`, and also different where other parameters are read."""
        return self._columns[2]

    @property
    def weights(self) -> dict[int, tuple[int, ...]]:
        """For each of `bodies` the ids of the parameters that it reads, where there are some."""
        return self._columns[3]

    def fixed(self, numbers: Numbers) -> bool:
        """True where all these calls are of one function, with the same arguments except for tensors."""
        bodies = self._numbered[numbers]
        if int(bodies[0]) in self._columns[4] and not (bodies != bodies[0]).any():
            return True
        calls = list(map(self.calls.__getitem__, numbers.tolist()))
        try:
            return constant([[call[0] for call in calls], *argument_leaves(calls)])
        except Uneven:
            return False

    def keys(self, ops: Sequence[int], level: int, *, depth: bool) -> list[int]:
        """For each of these calls a number that is equal for the same call of a loop's body.

        That is the instruction at this level of the stack of frames, the calls below it, the function and, without
        `depth`, the module: its object and the parameters that are used.
        """
        found, numbers = self._keys.setdefault((level, depth), ({}, {}))
        bodies = list(map(self.bodies.__getitem__, ops))
        for body in set(bodies) - found.keys():
            key = self._key(self._firsts[body], level, depth=depth)
            found[body] = numbers.setdefault(key, len(numbers))
        return list(map(found.__getitem__, bodies))

    @cached_property
    def _numbered(self) -> Numbers:
        return np.array(self.bodies, dtype=np.int64)

    @cached_property
    def _firsts(self) -> dict[int, int]:
        """For each of `bodies` a call."""
        return dict(zip(self.bodies, range(len(self)), strict=True))

    def offsets(self, ops: Sequence[int], level: int) -> list[int]:
        """For each of these calls the offset of the instruction that the frame at a level of the stack is at."""
        above = [outer[level][1] if level < len(outer) else -1 for outer, _ in self.wheres]
        return [above[self.where[n]] if above[self.where[n]] >= 0 else self.calls[n][5] for n in ops]

    def frames(self, level: int) -> list[FrameType | None]:
        """For each of `wheres` the frame at a level of the stack, or None."""
        if level not in self._frames:
            self._frames[level] = [
                outer[level][0] if level < len(outer) else inner if level == len(outer) else None
                for outer, inner in self.wheres
            ]
        return self._frames[level]

    def _key(self, n: int, level: int, *, depth: bool) -> Key:
        func, _, _, _, where, at = self.calls[n]
        chain = (*where[0], (where[1], at))
        key = (chain[level][1], tuple((frame.f_code, at) for frame, at in chain[level + 1 :]), name_of(func))
        return key if depth else (*key, id(self._owner(where)), self.weights.get(self.bodies[n], ()))


class _Filling:
    """Ids for every call, collected site by site."""

    def __init__(self, count: int) -> None:
        self.count = np.zeros(count, dtype=np.int64)
        self._columns: list[tuple[Numbers, int, Numbers]] = []
        self._rows: list[tuple[int, Numbers]] = []

    def together(self, numbers: Numbers, columns: Sequence[Sequence[Tensor]]) -> None:
        """Calls that have the same number of tensors."""
        self.count[numbers] = len(columns)
        self._columns += [(numbers, k, ids_of(column)) for k, column in enumerate(columns)]

    def alone(self, n: int, tensors: Sequence[Tensor]) -> None:
        """One call."""
        self.count[n] = len(tensors)
        self._rows.append((n, ids_of(tensors)))

    def ragged(self) -> Ragged:
        """All of them."""
        start = np.cumsum(self.count) - self.count
        ids = np.zeros(int(self.count.sum()), dtype=np.int64)
        for numbers, k, column in self._columns:
            ids[start[numbers] + k] = column
        for n, row in self._rows:
            ids[start[n] : start[n] + len(row)] = row
        return Ragged(ids, start, self.count)
