"""What a loop carries from one iteration to the next: its state variables, which of them belong together, and lags.

A value that an iteration makes and a later one reads is carried. Values read at the same places or made by the same
operations are one variable, a slot. Slots that influence each other through an iteration are one recurrent state:
h and c of an LSTM are, the states of two stacked layers are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.handwritten.loops import Label, Loop
from inspector.engine.handwritten.recording import Op

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

Place = tuple[int, int]
"""(iteration, number of the operation in it)."""


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
        source: id of a tensor → (iteration, operation) that made it.
        changed: id of a tensor's storage → operations that wrote into it, in order.
        reach: for every iteration and operation a set of slots (bits) whose values before it depends on.
        tick: called now and then while long loops are worked on; may raise to stop it.
    """

    loop: Loop
    slots: list[Slot]
    source: dict[int, Place]
    changed: dict[int, list[Place]]
    reach: list[list[int]] = field(default_factory=list)
    tick: Callable[[], None] = lambda: None

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
    source, changed = _sources(loop)
    slots = _slots(loop, source)
    if not loop.depth and any(slot.made[-1] < 0 and min(slot.made[1:-1], default=-1) >= 0 for slot in slots):
        loop.iterations.pop()
        source, changed = _sources(loop)
        slots = _slots(loop, source)
    flow = Flow(loop, slots, source, changed)
    flow.reach = _reach(flow)
    return flow


def _sources(loop: Loop) -> tuple[dict[int, Place], dict[int, list[Place]]]:
    source: dict[int, Place] = {}
    changed: dict[int, list[Place]] = {}
    for i, ops in enumerate(loop.iterations):
        for j, (_, op) in enumerate(ops):
            if op.in_place:
                changed.setdefault(op.inputs[0].untyped_storage()._cdata, []).append((i, j))
            for out in op.outputs:
                if op.in_place or not any(out is given for given in op.inputs):  # eval-mode dropout is no maker
                    source.setdefault(id(out), (i, j))
    return source, changed


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


def _slots(loop: Loop, source: dict[int, Place]) -> list[Slot]:
    groups, names = _Groups(), _Interned()
    for i, ops in enumerate(loop.iterations):
        for label, op in ops:
            for n, given in enumerate(op.inputs):
                place = source.get(id(given))
                if place is not None and place[0] < i and given.is_floating_point():
                    maker, made = loop.iterations[place[0]][place[1]]
                    groups.join(names.of(("made", maker, _number(made, given))), names.of(("read", label, n)))
    found: dict[object, Slot] = {}
    for i, ops in enumerate(loop.iterations):
        _advance(found, i)
        for j, (label, op) in enumerate(ops):
            _begin(found, groups, names, label, op, source, i)
            _make(found, groups, names, (label, op), i, j)
    slots = [slot for slot in found.values() if any(made >= 0 for made in slot.made)]
    for n, slot in enumerate(slots):
        slot.index = n
    _measure_lags(loop, slots, groups, names, found)
    return slots


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
    found: dict[object, Slot], groups: _Groups, names: _Interned, label: Label, op: Op, source: dict[int, Place], i: int
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
        if slot is None and out.is_floating_point():  # the first iteration reads no earlier value
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


def _measure_lags(loop: Loop, slots: list[Slot], groups: _Groups, names: _Interned, found: dict[object, Slot]) -> None:
    newest: list[dict[int, int]] = [{} for _ in slots]
    for i, ops in enumerate(loop.iterations):
        for slot in slots:
            newest[slot.index][id(slot.values[i])] = i
        for label, op in ops:
            for n, given in enumerate(op.inputs):
                item = names.known(("read", label, n))
                owner = found.get(groups.find(item)) if item is not None else None
                if owner is not None and owner.index >= 0:
                    at = newest[owner.index].get(id(given))
                    if at is not None:
                        owner.lags = max(owner.lags, i - at)


def _reach(flow: Flow) -> list[list[int]]:
    holders: dict[int, int] = {}
    for slot in flow.slots:
        for value in slot.values:
            holders[id(value)] = holders.get(id(value), 0) | 1 << slot.index
    found: list[list[int]] = []
    for i, ops in enumerate(flow.loop.iterations):
        row: list[int] = []
        for j, (_, op) in enumerate(ops):
            bits = 0
            for given in op.inputs:
                place = flow.source.get(id(given))
                if place is not None and place[0] == i and place[1] < j:
                    bits |= row[place[1]]
                elif place is None or place[0] < i:
                    bits |= holders.get(id(given), 0)
                for written in flow.writers(given, (i, j)):
                    bits |= row[written[1]]
            row.append(bits)
        found.append(row)
    return found


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
    i = next(n for n, made in enumerate(slot.made) if made >= 0 and n > 0)
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
