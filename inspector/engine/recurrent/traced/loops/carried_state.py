"""What a loop carries from one iteration to the next: its variables, their values and lags, and what they reach.

A value that an iteration makes and a later one reads is carried. Values read at the same places or made by the same
operations are one variable (carried_variables.py); a slot is such a variable with all its values.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from inspector.engine.recurrent.traced.loops.carried_variables import Item, Variables, carried
from inspector.engine.recurrent.traced.loops.early_values import take_early
from inspector.engine.recurrent.traced.loops.first_values import part_starts
from inspector.engine.recurrent.traced.loops.iteration_classes import Held, Place, Sources, Twins
from inspector.engine.recurrent.traced.loops.loop import Label, Loop
from inspector.engine.recurrent.traced.loops.written_memory import WrittenMemory
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.values import Numbers, ids_of, storage_of

NO_STATE: Held = (0, 0)
MOST_BITS = 62
"""Slots that fit the bits of a machine integer; in a loop with more, every iteration is examined. Counter-example: a
loop over 63 layers' states is analysed as correctly as others, but in time proportional to its steps."""


@dataclass(slots=True)
class Slot:
    """One carried variable.

    Attributes:
        values: before the first iteration, then after each: iterations + 1 tensors (the same one where it did not
            change).
        made: for each iteration the number of the operation that made the new value, or -1.
        lags: how many iterations old the oldest value is that an iteration reads (0: only the newest).
        early: number of steps before the first of `values` → the value then, where steps read older values.
        shapes: of the values that are made, where they are not all alike: such values are not among `values`.
        name: of the part of the state; written: of the variable in the user's code.
    """

    index: int
    values: list[Tensor]
    made: list[int]
    lags: int = 0
    early: dict[int, Tensor] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = ()
    name: str = ""
    written: str = ""


@dataclass(slots=True)
class Flow:
    """Where every tensor of a loop comes from, and which slots reach which operation.

    Attributes:
        twins: which iterations ran the same operations, where tensors are made and which memory is written into.
        reach: for every iteration and operation a set of slots (bits) whose values before it depends on.
        held: for every slot the ids of its values.
        tick: called at intervals while long loops are analysed; may raise to stop it.
        leading: what program/gates.py found to lead to some slots (ids) in an iteration, with those slots.
    """

    loop: Loop
    twins: Twins
    slots: list[Slot] = field(default_factory=list)
    reach: list[list[int]] = field(default_factory=list)
    held: list[Numbers] = field(default_factory=list)
    tick: Callable[[], None] = lambda: None
    leading: dict[tuple[tuple[int, ...], int, bool], tuple[tuple[Slot, ...], set[int]]] = field(default_factory=dict)

    @property
    def source(self) -> Sources:
        """Id of a tensor → (iteration, operation) that made it."""
        return self.twins.source

    @property
    def changed(self) -> dict[int, list[Place]]:
        """Id of a tensor's storage → operations that wrote into it, in order."""
        return self.twins.changed

    def op(self, place: Place) -> Op:
        """The operation at a place."""
        return self.loop.iterations[place[0]][place[1]][1]

    def made_here(self, tensor: Tensor, i: int, before: int | None = None) -> int | None:
        """The operation of iteration i that made a tensor, if one did (and before this one)."""
        place = self.source.get(id(tensor))
        return place[1] if place is not None and place[0] == i and (before is None or place[1] < before) else None

    def writers(self, tensor: Tensor, before: Place) -> list[Place]:
        """Operations of the same iteration that wrote into a tensor's memory before a place."""
        if not self.changed:
            return []
        written = self.changed.get(storage_of(tensor), [])
        return written[bisect_left(written, (before[0], -1)) : bisect_left(written, before)]

    def last_writer(self, tensor: Tensor, before: Place) -> list[int]:
        """The last of these operations, by its number in the iteration; none where there is none.

        It was given what the others had written: who follows what an operation is given needs no other.
        """
        written = self.changed.get(storage_of(tensor), []) if self.changed else []
        n = bisect_left(written, before)
        return [written[n - 1][1]] if n and written[n - 1][0] == before[0] else []


def analyse(loop: Loop) -> Flow:
    """The slots of a loop and the flow through it.

    A last iteration that makes no new value of a variable of which all others make one is left out: the loop ended in
    the middle of it. Counter-example: a mask that leaves the state unchanged at the very last step only; that step, at
    which nothing changes, is not shown.
    """
    flow = _with_slots(loop)
    if not loop.depth and any(slot.made[-1] < 0 and min(slot.made[1:-1], default=-1) >= 0 for slot in flow.slots):
        loop.iterations.drop_last()
        flow = _with_slots(loop)
    flow.held = [ids_of(slot.values) for slot in flow.slots]
    holders = _holders(flow)
    if len(flow.slots) < MOST_BITS:
        flow.twins.refine(holders, [np.array(slot.made) for slot in flow.slots])
    else:
        flow.twins.part()
    rows = {i: _reach(flow, holders, i) for i in flow.twins.members}
    flow.reach = [rows[first] for first in flow.twins.first]
    return flow


def _with_slots(loop: Loop) -> Flow:
    flow = Flow(loop, Twins(loop))
    flow.slots = _slots(flow)
    return flow


def _slots(flow: Flow) -> list[Slot]:
    loop, twins = flow.loop, flow.twins
    variables = carried(loop, twins)
    count = len(variables.all())
    found: dict[Item, Slot] = {}
    begun: dict[Item, Tensor] = {}
    makers: dict[int, list[tuple[Slot, int, int]]] = {}
    for i, first in enumerate(twins.first):
        _advance(found, i)
        if len(found) == count and len(twins.members[first]) > 1:
            if first not in makers:
                makers[first] = _makers(found, variables, loop.iterations[first])
            for slot, j, n in makers[first]:
                out = twins.table.results([loop.iterations.numbers[i][j]], n)[0]
                _take(slot, i, j, out)
            continue
        _begin(flow, found, variables, i, begun)
        for j, (label, op) in enumerate(loop.iterations[i]):
            _make(found, variables, (label, op), i, j)
    slots = [slot for slot in found.values() if any(made >= 0 for made in slot.made)]
    for n, slot in enumerate(slots):
        slot.index = n
    starts = [(found[variable], given) for variable, given in begun.items() if found[variable].index >= 0]
    part_starts(twins, starts, lambda label, n: _slot_read(found, variables, label, n))
    _measure_lags(flow, found, variables)
    take_early(twins, lambda label, n: _slot_read(found, variables, label, n), variables.lists)
    return slots


def _slot_read(found: dict[Item, Slot], variables: Variables, label: Label, n: int) -> Slot | None:
    variable = variables.read(label, n)
    return None if variable is None else found.get(variable)


def _makers(found: dict[Item, Slot], variables: Variables, ops: list[tuple[Label, Op]]) -> list[tuple[Slot, int, int]]:
    """(slot, operation, output) of the values that equal iterations make, in order; none of them writes in place."""
    makers = []
    for j, (label, op) in enumerate(ops):
        for n, out in enumerate(op.outputs):
            variable = variables.made(label, n)
            if variable is not None and not any(out is given for given in op.inputs):
                makers.append((found[variable], j, n))
    return makers


def _advance(found: dict[Item, Slot], i: int) -> None:
    for slot in found.values():
        slot.values.append(slot.values[-1])
        slot.made.append(-1)
        assert len(slot.values) == i + 2


def _begin(flow: Flow, found: dict[Item, Slot], variables: Variables, i: int, begun: dict[Item, Tensor]) -> None:
    """A slot begins with the value that its first reader is given, from outside the loop or made in the iteration
    itself.

    All of an iteration's readers come before all makers: `a, b = f(b), g(a)` reads both before it makes either.
    """
    ops = flow.loop.iterations[i]
    for j, (label, op) in enumerate(ops):
        for n, given in enumerate(op.inputs):
            variable = variables.read(label, n)
            if variable is None or variable in found or not given.is_floating_point():
                continue
            made = flow.made_here(given, i, j)
            if made is not None and (i > 0 or variables.made(ops[made][0], ops[made][1].output(given)) == variable):
                continue
            found[variable], begun[variable] = Slot(-1, [given] * (i + 2), [-1] * (i + 1)), given


def _make(found: dict[Item, Slot], variables: Variables, labelled: tuple[Label, Op], i: int, j: int) -> None:
    """Operation j of iteration i gives slots their new values, or writes into them."""
    label, op = labelled
    for n, out in enumerate(op.outputs):
        variable = variables.made(label, n)
        if variable is None:
            continue
        slot = found.get(variable)
        if slot is None and i == 0 and out.is_floating_point():  # the first iteration reads no earlier value
            nothing = torch.zeros_like(out, requires_grad=False)
            slot = found[variable] = Slot(-1, [nothing] * (i + 2), [-1] * (i + 1))
        passed_on = not op.in_place and any(out is given for given in op.inputs)
        if slot is None or passed_on:
            continue
        if out.shape != slot.values[0].shape and max(slot.made) < 0:
            slot.values = [_as_wide(slot.values[0], out)] * len(slot.values)
        _take(slot, i, j, out)
    for slot in found.values() if op.in_place else ():
        if slot.made[i] >= 0 and slot.values[i + 1] is op.target:
            slot.made[i] = j


def _take(slot: Slot, i: int, j: int, out: Tensor) -> None:
    """Operation j of iteration i made the slot's new value."""
    first = slot.values[0].shape
    if out.shape == first:
        slot.values[i + 1], slot.made[i] = out, j
    else:
        slot.shapes = tuple(dict.fromkeys((*(slot.shapes or (tuple(first),)), tuple(out.shape))))


def _as_wide(first: Tensor, made: Tensor) -> Tensor:
    """The initial value of a loop (one row for all sequences, a number, nothing yet) in the shape of later ones."""
    try:
        return first.detach().expand(made.shape)
    except RuntimeError:
        return torch.zeros_like(made, requires_grad=False)


def _measure_lags(flow: Flow, found: dict[Item, Slot], variables: Variables) -> None:
    """How old the values are that are read on the way to new ones. The initial value may be read again: that is no lag,
    but a reset, unless it is an entry of a list of past values."""
    held = {id(slot): ids_of(slot.values) for slot in found.values() if slot.index >= 0}
    newest: dict[int, dict[int, list[int]]] = {}
    for i, members in flow.twins.members.items():
        leading = _leading(flow, found, i)
        for j, (label, op) in enumerate(flow.loop.iterations[i]):
            for n in range(len(op.inputs)):
                slot = _slot_read(found, variables, label, n)
                if slot is None or slot.index < 0 or j not in leading:
                    continue
                given, own = flow.twins.given(members, j, n), held[id(slot)]
                listed = any((label, n) in sites for sites in variables.lists)
                for m in np.nonzero((given != own[members]) & (listed | (given != own[0])))[0]:
                    if slot.index not in newest:
                        newest[slot.index] = _places(own)
                    places = newest[slot.index].get(int(given[m]), [])
                    before = bisect_right(places, int(members[m]))
                    if before:
                        slot.lags = max(slot.lags, int(members[m]) - places[before - 1])


def _leading(flow: Flow, found: dict[Item, Slot], i: int) -> set[int]:
    """The operations of an iteration of which something carried is made: not those that only collect outputs."""
    todo = [slot.made[i] for slot in found.values() if slot.made[i] >= 0]
    leading: set[int] = set()
    while todo:
        j = todo.pop()
        if j in leading:
            continue
        leading.add(j)
        for given in flow.op((i, j)).inputs:
            made = flow.made_here(given, i, j)
            todo += flow.last_writer(given, (i, j)) + ([] if made is None else [made])
    return leading


def _places(ids: Numbers) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for n, number in enumerate(ids.tolist()):
        found.setdefault(number, []).append(n)
    return found


def _holders(flow: Flow) -> dict[int, Held]:
    """Id of a tensor → slots (bits) that it is a value of, and the last iteration in which it is one.

    After that it is no longer a state: the initial value of a loop may be read again, as a reset.
    """
    holders: dict[int, Held] = {}
    for slot, held in zip(flow.slots, flow.held, strict=True):
        for n, number in enumerate(held.tolist()):
            holders[number] = 1 << slot.index, n + slot.lags
        for before, value in slot.early.items():
            holders[id(value)] = 1 << slot.index, slot.lags - before
    return holders


def _reach(flow: Flow, holders: dict[int, Held], i: int) -> list[int]:
    row: list[int] = []
    memory = WrittenMemory(flow.changed, i)
    for j, (_, op) in enumerate(flow.loop.iterations[i]):
        bits = 0
        for given in op.inputs[1:] if op.replaces else op.inputs:
            place = flow.source.get(id(given))
            anew, written = memory.read(given)
            if anew:  # nothing is left of what it was made as
                pass
            elif place is not None and place[0] == i and place[1] < j:
                bits |= row[place[1]]
            elif place is None or place[0] < i:
                held, last = holders.get(id(given), NO_STATE)
                bits |= held if i <= last else 0
            bits |= written
        row.append(0 if op.traits.forgets else bits)
        memory.wrote(j, op, row[j])
    return row
