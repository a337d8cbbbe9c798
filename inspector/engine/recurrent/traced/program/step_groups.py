"""The steps of a recurrence grouped by the program that leads from their state to the next.

The program of one iteration is that of its twins where they read the same state, parameters and constants in the same
places; their other inputs are what differs from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import attrgetter

import numpy as np
import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.loops.state_choice import states
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.program.inner_cells import of_a_cell
from inspector.engine.recurrent.traced.program.instructions import Program
from inspector.engine.recurrent.traced.program.parameter_use import key_of
from inspector.engine.recurrent.traced.program.slicing import Slicer
from inspector.engine.recurrent.traced.program.state_layout import Part, Steps
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import Numbers, same_entries

Parameters = Mapping[int, str]
"""Id of a parameter of the model → its qualified name."""
MOST_PROGRAMS = 64
"""Each is extracted, run and differentiated separately. Counter-example: a step with seven independent branches may
have 128 different programs; it is then differentiated through autograd's graph if there is a loss, else rejected with
the number."""
SHAPE_AND_TYPE = attrgetter("shape"), attrgetter("dtype")


@dataclass(slots=True)
class _Group:
    """Steps of one program and, for each of its tensors from outside, the tensor of every step."""

    program: Program
    numbers: list[int]
    columns: list[list[Tensor]]


@torch.no_grad()
def programs_of(
    flow: Flow,
    parts: dict[str, Part],
    state: Sequence[Slot],
    made: Container[int],
    more: Parameters | None = None,
    stops: Collection[int] = (),
) -> tuple[list[Steps], bool]:
    """The steps grouped by program, and whether a gradient was cut in them. Raises Unsupported.

    With `more` the programs have those parameters as inputs too, and new values of other states stay as recorded.
    `stops`: ids of values that stay as recorded, whatever they were computed from.
    """
    seen: dict[tuple[Hashable, ...], _Group] = {}
    cutting = _Cutting(flow, parts, state, _keys(more or {}), bool(more), stops)
    for members in flow.twins.members.values():
        for program, numbers, columns in cutting.of(members):
            group = seen.setdefault(program.signature, _Group(program, [], [[] for _ in columns]))
            group.numbers += numbers
            for column, tensors in zip(group.columns, columns, strict=True):
                column += tensors
            if len(seen) > MOST_PROGRAMS:
                raise Unsupported(f"its steps run more than {MOST_PROGRAMS} different programs")
    masks = frozenset(map(id, cutting.slicer.masks))
    groups = [_stacked(group, made, masks) for group in seen.values()]
    return groups, any(group.program.cut for group in groups) or _cut_in_place(flow, state)


@torch.no_grad()
def operations_of(flow: Flow, parts: dict[str, Part], state: Sequence[Slot], more: Parameters) -> dict[int, list[int]]:
    """The operations of the step, with these parameters as inputs, for one iteration of each class: through detached
    values too. Raises Unsupported."""
    cutting = _Cutting(flow, parts, state, _keys(more), True)
    return {first: cutting.one(first)[2] for first in flow.twins.members}


def _keys(more: Parameters) -> dict[int, Hashable]:
    return {number: key_of(name) for number, name in more.items()}


def _cut_in_place(flow: Flow, state: Sequence[Slot]) -> bool:
    """True where a value of the state is detached in place: it changes no number, so it is in no program."""
    own = {number for slot in state for number in flow.held[slot.index].tolist()}
    return any(
        op.traits.kind is Kind.DETACH and op.outputs[0] is op.inputs[0] and id(op.inputs[0]) in own
        for i in flow.twins.members
        for _, op in flow.loop.iterations[i]
    )


def _stacked(group: _Group, made: Container[int], masks: frozenset[int]) -> Steps:
    numbers = group.numbers
    if any(a > b for a, b in pairwise(numbers)):
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        numbers = [numbers[n] for n in order]
        group.columns = [[column[n] for n in order] for column in group.columns]
    shared, outside = [], []
    for same in group.columns:
        first = same[0]
        shared.append(all(one is first or same_entries(one, first) for one in same))
        if not shared[-1] and first.is_floating_point() and id(first) not in masks and id(first) not in made:
            raise Unsupported("something in them is not a function of torch's")
        outside.append(first.detach() if shared[-1] else torch.stack(same))
    return Steps(group.program, torch.tensor(numbers), outside, shared)


class _Cutting:
    """Extracts the programs of one recurrence from its loop, twins together."""

    def __init__(
        self,
        flow: Flow,
        parts: dict[str, Part],
        state: Sequence[Slot],
        keys: Mapping[int, Hashable],
        trained: bool,
        stops: Collection[int] = (),
    ) -> None:
        self.flow, self.state, self.keys = flow, state, keys
        self.by_index = {slot.index: slot for slot in state}
        self.parts = sorted(parts.values(), key=lambda part: -part.lag)
        self.slicer = Slicer(flow, _others(flow, state) if trained else (), stops)
        lagging = [flow.held[slot.index] for slot in state if slot.lags]
        self.left = bool(stops) or any(bool((held[1:] == held[:-1]).any()) for held in lagging)

    def of(self, members: Numbers) -> list[tuple[Program, list[int], list[list[Tensor]]]]:
        """(program, iterations, tensors from outside for each place) of all these twins. Raises Unsupported."""
        program, outside, chosen = self.one(int(members[0]))
        columns = self._together(members, program, outside, chosen) if len(members) > 1 else None
        if columns is not None:
            return [(program, members.tolist(), columns)]
        rest = [self.one(int(i)) for i in members[1:]]
        return [
            (found, [int(i)], [[tensor] for tensor in tensors])
            for i, (found, tensors, _) in zip(members, [(program, outside, chosen), *rest], strict=True)
        ]

    def one(self, i: int) -> tuple[Program, list[Tensor], list[int]]:
        """The program of iteration i, its tensors from outside, and its operations. Raises Unsupported."""
        inputs = dict(self.keys)
        for part in self.parts:
            slot = self.by_index[part.slot]
            value = slot.values[i - part.lag] if i >= part.lag else slot.early.get(part.lag - i)
            if value is not None:
                inputs[id(value)] = part.key
        return self.slicer.cut(i, inputs, [slot.values[i + 1] for slot in self.state])

    def _together(
        self, members: Numbers, program: Program, outside: list[Tensor], chosen: list[int]
    ) -> list[list[Tensor]] | None:
        """The tensors from outside of all twins, for each place of the program; None where they do not all share it."""
        twins, first = self.flow.twins, int(members[0])
        ops = self.flow.loop.iterations[first]
        if self.left or first < self.parts[0].lag:
            return None
        calls = [twins.calls(members, j) for j in chosen]
        if not all(twins.table.plain(own) and twins.table.fixed(own) for own in calls):
            return None
        columns = _Columns(outside)
        inside = set(chosen)
        for j, (_, op) in enumerate(ops):
            for n, tensor in enumerate(op.inputs):
                if self._local(tensor, first) and id(tensor) not in columns.places:
                    continue
                ids = twins.given(members, j, n)
                if not self._same_role(members, ids):
                    return None
                if j in inside and not columns.add(tensor, ids, partial(twins.inputs, members, j, n)):
                    return None
        return columns.found() if self._results(members, columns) else None

    def _results(self, members: Numbers, columns: _Columns) -> bool:
        """Add the results; False where the new state of some twin has another source than that of the first."""
        twins, first = self.flow.twins, int(members[0])
        for slot in self.state:
            tensor, ids = slot.values[first + 1], self.flow.held[slot.index][members + 1]
            if self._local(tensor, first):
                j = self.flow.source[id(tensor)][1]
                number = self.flow.op((first, j)).output(tensor)
                same = bool(np.array_equal(ids, twins.made(members, j, number)))
            else:
                same = self._same_role(members, ids)
            if not same or not columns.add(tensor, ids, partial(_values, slot, members)):
                return False
        return True

    def _local(self, tensor: Tensor, i: int) -> bool:
        return self.flow.made_here(tensor, i) is not None

    def _same_role(self, members: Numbers, ids: Numbers) -> bool:
        """True where these tensors are the same part of the state, or the same parameter, of all twins, or neither."""
        role = np.full(len(members), -1)
        for n, part in enumerate(self.parts):
            role[ids == self.flow.held[part.slot][members - part.lag]] = n
        if (role != role[0]).any():
            return False
        return not self.keys or not (ids != ids[0]).any() or self.keys.keys().isdisjoint(ids.tolist())


def _values(slot: Slot, members: Numbers) -> list[Tensor]:
    return [slot.values[i + 1] for i in members.tolist()]


class _Columns:
    """The tensors from outside of a program, for each of them the tensor of every twin."""

    def __init__(self, outside: Sequence[Tensor]) -> None:
        self.places = {id(tensor): k for k, tensor in enumerate(outside)}
        self._ids: list[Numbers | None] = [None] * len(outside)
        self._columns: list[list[Tensor]] = [[] for _ in outside]

    def add(self, tensor: Tensor, ids: Numbers, column: Callable[[], list[Tensor]]) -> bool:
        """Note that where the first twin has this tensor, all twins have these;
        False where that contradicts another place."""
        k = self.places.get(id(tensor))
        if k is None:
            return True
        known = self._ids[k]
        if known is not None:
            return bool(np.array_equal(known, ids))
        self._ids[k] = ids
        same = not (ids != ids[0]).any()
        self._columns[k] = [tensor] * len(ids) if same else column()
        return same or all(len(set(map(kind, self._columns[k]))) == 1 for kind in SHAPE_AND_TYPE)

    def found(self) -> list[list[Tensor]] | None:
        """All of them, or None where one was not found."""
        return self._columns if all(ids is not None for ids in self._ids) else None


def _others(flow: Flow, state: Sequence[Slot]) -> frozenset[int]:
    """Ids of the values that belong to other recurrences of the loop: the new values of their states, and those that
    lead to them.

    A parameter is itemised once: `u` of `u = f(x, a); a = 0.9 * u; b = g(u, b)` is a value inside the steps of a, and
    outside those of b.
    """
    others = [slot for slot in flow.slots if slot not in state]
    found = {id(slot.values[i + 1]) for slot in others for i, j in enumerate(slot.made) if j >= 0}
    if others:
        for i, members in flow.twins.members.items():
            for j in _owned_by_others(flow, state, i):
                op = flow.loop.iterations[i][j][1]
                for n in range(0 if op.in_place else len(op.outputs)):
                    found.update(flow.twins.made(members, j, n).tolist())
    return frozenset(found)


def _owned_by_others(flow: Flow, state: Sequence[Slot], i: int) -> set[int]:
    """The operations of iteration i that are a part of another recurrence's step.

    That is: each on the way from its state to its new one, and those before it that the first of several recurrences
    leads through (`y = W x; a = f(y, a); b = g(y, b)`: y is a value inside the steps of a). The probe of a cell knows
    nothing of what is before it.
    """
    own = sum(1 << slot.index for slot in state)
    found: set[int] = set()
    before = True
    for group in states(flow):
        if any(slot in state for slot in group):
            before = False
            continue
        bits = sum(1 << slot.index for slot in group)
        alone = of_a_cell(flow, group)
        found |= {
            j for j in leading_to(flow, group, i)
            if not flow.reach[i][j] & own and (flow.reach[i][j] & bits or (before and not alone))
        }  # fmt: skip
    return found
