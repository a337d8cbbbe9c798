"""What a loop carries from one iteration to the next: its state variables, which of them belong together, and lags.

A value that an iteration makes and a later one reads is carried. Values read at the same places or made by the same
operations are one variable, a slot. Slots that influence each other through an iteration are one recurrent state:
h and c of an LSTM are, the states of two stacked layers are not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from inspector.engine.recurrent.traced.loops.detection import Label, Loop
from inspector.engine.recurrent.traced.loops.iteration_classes import Place, Sources, Twins
from inspector.engine.recurrent.traced.record.op_table import Numbers, ids_of
from inspector.engine.recurrent.traced.record.operation import FORGOTTEN, Op

ADDITIVE = frozenset(
    [
        "add",
        "__add__",
        "__radd__",
        "__iadd__",
        "add_",
        "cat",
        "stack",
        "concat",
        "hstack",
        "vstack",
        "append",
        "__setitem__",
        "unsqueeze",
        "view",
        "reshape",
        "sum",
        "mean",
        "detach",
        "to",
        "clone",
    ]
)
"""A variable that only goes through these sums or collects; it is no recurrent state."""

MOST_BITS = 62
"""Slots that fit the bits of a machine's number; in a loop with more, every iteration is looked at."""


@dataclass(slots=True)
class Slot:
    """One carried variable.

    Attributes:
        values: before the first iteration, then after each: iterations + 1 tensors (the same one where it was left).
        made: for each iteration the number of the operation that made the new value, or -1.
        lags: how many iterations old the oldest value is that an iteration reads (0: only the newest).
        name: of the part of the state; written: of the variable in the user's code.
    """

    index: int
    values: list[Tensor]
    made: list[int]
    lags: int = 0
    name: str = ""
    written: str = ""


@dataclass(slots=True)
class Flow:
    """Where every tensor of a loop comes from, and which slots reach which operation.

    Attributes:
        twins: which iterations did the same, where tensors are made and which memory is written into.
        reach: for every iteration and operation a set of slots (bits) whose values before it depends on.
        held: for every slot the ids of its values.
        tick: called now and then while long loops are worked on; may raise to stop it.
    """

    loop: Loop
    twins: Twins
    slots: list[Slot] = field(default_factory=list)
    reach: list[list[int]] = field(default_factory=list)
    held: list[Numbers] = field(default_factory=list)
    tick: Callable[[], None] = lambda: None

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

    def writers(self, tensor: Tensor, before: Place) -> list[Place]:
        """Operations of the same iteration that wrote into a tensor's memory before a place."""
        if not self.changed:
            return []
        written = self.changed.get(tensor.untyped_storage()._cdata, ())
        return [place for place in written if place[0] == before[0] and place[1] < before[1]]


def analyse(loop: Loop) -> Flow:
    """The slots of a loop and the flow through it.

    A last iteration that does not make a new value of what all others make one of is left out.
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


class _Groups:
    """Union-find over the places where carried values are made and read."""

    def __init__(self) -> None:
        self.parent: dict[object, object] = {}

    def find(self, item: object) -> object:
        """The representative of an item's group."""
        parent = self.parent
        parent.setdefault(item, item)
        while parent[item] is not item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def join(self, a: object, b: object) -> None:
        """Make two groups one."""
        self.parent[self.find(a)] = self.find(b)


def _number(op: Op, tensor: Tensor) -> int:
    return next(n for n, out in enumerate(op.outputs) if out is tensor)


def _slots(flow: Flow) -> list[Slot]:
    loop, source, twins = flow.loop, flow.source, flow.twins
    groups, names = _Groups(), _Interned()
    for i in twins.members:
        for label, op in loop.iterations[i]:
            for n, given in enumerate(op.inputs):
                place = source.get(id(given))
                if place is not None and place[0] < i and given.is_floating_point():
                    maker, made = loop.iterations[place[0]][place[1]]
                    groups.join(names.of(("made", maker, _number(made, given))), names.of(("read", label, n)))
    found: dict[object, Slot] = {}
    begun = {groups.find(item) for item in names.items.values()}
    makers: dict[int, list[tuple[Slot, int, int]]] = {}
    for i, first in enumerate(twins.first):
        _advance(found, i)
        if len(found) == len(begun) and len(twins.members[first]) > 1:
            if first not in makers:
                makers[first] = _makers(found, groups, names, loop.iterations[first])
            for slot, j, n in makers[first]:
                out = twins.table.results([loop.iterations.numbers[i][j]], n)[0]
                if out.shape == slot.values[0].shape:
                    slot.values[i + 1], slot.made[i] = out, j
            continue
        for j, (label, op) in enumerate(loop.iterations[i]):
            _begin(found, groups, names, label, op, source, i)
            _make(found, groups, names, (label, op), i, j)
    slots = [slot for slot in found.values() if any(made >= 0 for made in slot.made)]
    for n, slot in enumerate(slots):
        slot.index = n
    _measure_lags(flow, groups, names, found)
    return slots


def _makers(
    found: dict[object, Slot], groups: _Groups, names: _Interned, ops: list[tuple[Label, Op]]
) -> list[tuple[Slot, int, int]]:
    """(slot, operation, output) of what twins make, in order; none of them writes in place."""
    makers = []
    for j, (label, op) in enumerate(ops):
        for n, out in enumerate(op.outputs):
            item = names.known(("made", label, n))
            if item is not None and not any(out is given for given in op.inputs):
                makers.append((found[groups.find(item)], j, n))
    return makers


class _Interned:
    """One object for equal items, so that groups compare by identity."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, Label, int], tuple[str, Label, int]] = {}

    def of(self, item: tuple[str, Label, int]) -> object:
        """The object of an item, new if need be."""
        return self.items.setdefault(item, item)

    def known(self, item: tuple[str, Label, int]) -> object | None:
        """The object of an item that is carried or read, or None."""
        return self.items.get(item)


def _advance(found: dict[object, Slot], i: int) -> None:
    for slot in found.values():
        slot.values.append(slot.values[-1])
        slot.made.append(-1)
        assert len(slot.values) == i + 2


def _begin(
    found: dict[object, Slot], groups: _Groups, names: _Interned, label: Label, op: Op, source: Sources, i: int
) -> None:
    """A slot begins with the value that its first reader is given, from outside the loop or made on the spot."""
    for n, given in enumerate(op.inputs):
        item = names.known(("read", label, n))
        if item is None or not given.is_floating_point():
            continue
        group = groups.find(item)
        if group not in found and (i == 0 or id(given) not in source or source[id(given)][0] < i):
            found[group] = Slot(-1, [given] * (i + 2), [-1] * (i + 1))


def _make(
    found: dict[object, Slot], groups: _Groups, names: _Interned, labelled: tuple[Label, Op], i: int, j: int
) -> None:
    """Operation j of iteration i gives slots their new values, or writes into them."""
    label, op = labelled
    for n, out in enumerate(op.outputs):
        item = names.known(("made", label, n))
        if item is None:
            continue
        slot = found.get(groups.find(item))
        if slot is None and i == 0 and out.is_floating_point():  # the first iteration reads no earlier value
            nothing = torch.zeros_like(out, requires_grad=False)
            slot = found[groups.find(item)] = Slot(-1, [nothing] * (i + 2), [-1] * (i + 1))
        passed_on = not op.in_place and any(out is given for given in op.inputs)
        if slot is None or passed_on:
            continue
        if out.shape != slot.values[0].shape and max(slot.made) < 0:
            slot.values = [_as_wide(value, out) for value in slot.values]
        if out.shape == slot.values[0].shape:
            slot.values[i + 1], slot.made[i] = out, j
    for slot in found.values() if op.in_place else ():
        if slot.made[i] >= 0 and slot.values[i + 1] is op.inputs[0]:
            slot.made[i] = j


def _as_wide(first: Tensor, made: Tensor) -> Tensor:
    """What a loop begins with (one row for all sequences, a number, nothing yet) in the shape of what it makes."""
    try:
        return first.detach().expand(made.shape)
    except RuntimeError:
        return torch.zeros_like(made, requires_grad=False)


def _measure_lags(flow: Flow, groups: _Groups, names: _Interned, found: dict[object, Slot]) -> None:
    held = {id(slot): ids_of(slot.values) for slot in found.values() if slot.index >= 0}
    newest: dict[int, dict[int, list[int]]] = {}
    for i, members in flow.twins.members.items():
        for j, (label, op) in enumerate(flow.loop.iterations[i]):
            for n in range(len(op.inputs)):
                item = names.known(("read", label, n))
                slot = found.get(groups.find(item)) if item is not None else None
                if slot is None or slot.index < 0:
                    continue
                given = flow.twins.given(members, j, n)
                for m in np.nonzero(given != held[id(slot)][members])[0]:
                    if slot.index not in newest:
                        newest[slot.index] = _places(held[id(slot)])
                    places = newest[slot.index].get(int(given[m]), [])
                    before = bisect_right(places, int(members[m]))
                    if before:
                        slot.lags = max(slot.lags, int(members[m]) - places[before - 1])


def _places(ids: Numbers) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for n, number in enumerate(ids.tolist()):
        found.setdefault(number, []).append(n)
    return found


def _holders(flow: Flow) -> dict[int, int]:
    """Id of a tensor → slots (bits) that it is a value of."""
    holders: dict[int, int] = {}
    for slot, held in zip(flow.slots, flow.held, strict=True):
        bit = 1 << slot.index
        for number in held.tolist():
            holders[number] = holders.get(number, 0) | bit
    return holders


def _reach(flow: Flow, holders: dict[int, int], i: int) -> list[int]:
    row: list[int] = []
    for j, (_, op) in enumerate(flow.loop.iterations[i]):
        bits = 0
        for given in op.inputs:
            place = flow.source.get(id(given))
            if place is not None and place[0] == i and place[1] < j:
                bits |= row[place[1]]
            elif place is None or place[0] < i:
                bits |= holders.get(id(given), 0)
            for written in flow.writers(given, (i, j)):
                bits |= row[written[1]]
        row.append(0 if op.name in FORGOTTEN else bits)
    return row


def states(flow: Flow) -> list[list[Slot]]:
    """Groups of slots that are one recurrent state each, in the order in which their first values are made."""
    count = len(flow.slots)
    influence = [0] * count
    for slot in flow.slots:
        for i, made in enumerate(slot.made):
            influence[slot.index] |= flow.reach[i][made] if made >= 0 else 1 << slot.index
    for k in range(count):
        for n in range(count):
            if influence[n] >> k & 1:
                influence[n] |= influence[k]
    groups: list[list[Slot]] = []
    taken: set[int] = set()
    for slot in flow.slots:
        n = slot.index
        if n in taken or not influence[n] >> n & 1:
            continue
        members = [s for s in flow.slots if influence[n] >> s.index & 1 and influence[s.index] >> n & 1]
        taken |= {s.index for s in members}
        if not (len(members) == 1 and _collects(flow, slot)):
            groups.append(members)
    return sorted(groups, key=lambda group: min(made for slot in group for made in slot.made[-2:]))


def _collects(flow: Flow, slot: Slot) -> bool:
    """True for a sum or a list that grows: its own old value goes through additive operations only."""
    bit = 1 << slot.index
    i = next((n for n, made in enumerate(slot.made) if made >= 0 and n > 0), None)
    if i is None:
        return True  # made by the first iteration alone: nothing of it goes from step to step
    ops = flow.loop.iterations[i]
    path, todo = set(), [slot.made[i]]
    while todo:
        j = todo.pop()
        if j in path or not flow.reach[i][j] & bit:
            continue
        path.add(j)
        for given in ops[j][1].inputs:
            place = flow.source.get(id(given))
            if place is not None and place[0] == i and place[1] < j:
                todo.append(place[1])
    return all(ops[j][1].name in ADDITIVE for j in path)
