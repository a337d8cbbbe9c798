"""Values inside a step that something else reads, and the places where a gradient stops.

A recurrence's step leads from one state to the next. Where the loss, or anything that leads to it, reads a value in
between (an output gate that is penalised, an output before zoneout), the gradient of the step's parameters is not in
the gradients of the states alone. Such values are outputs of the step beside the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operation import Op, results_of
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import Numbers

FOUND_IN = 3
"""How deep containers are searched for tensors that a model returns or stores."""


def stops_of(flow: Flow) -> frozenset[int]:
    """Ids of values at which a gradient stops: detached ones, results without a gradient of inputs that have one, and
    states that were computed from such values alone (under no_grad a memory passes on without a parameter).

    One iteration of each class and the last one of it are examined; a loop without such a place costs no more. Where
    some steps ran under no_grad, all are examined: they may lie between others that run the same operations.
    """
    looked = {int(i) for members in flow.twins.members.values() for i in (members[0], members[-1])}
    if not flow.twins.table.quiet(flow.twins.flat) and not any(
        _stops(flow, op) for i in looked for _, op in flow.loop.iterations[i]
    ):
        return frozenset()
    states = {number for held in flow.held for number in held.tolist()}
    found: set[int] = set()
    after: set[int] = set()
    for i in range(len(flow.loop.iterations)):
        for _, op in flow.loop.iterations[i]:
            found.update(id(out) for out in _stops(flow, op))
            if any(id(one) in found or id(one) in after for one in op.inputs):
                after.update(id(out) for out in op.outputs if not out.requires_grad and out.is_floating_point())
    return frozenset(found | (after & states))


def _stops(flow: Flow, op: Op) -> list[Tensor]:
    """Those of an operation's results. A view of a buffer that was written into later has a gradient only since then,
    so inputs count that are parameters, or results within the loop."""
    if op.in_place:
        return []
    given = any(one.requires_grad and (one.is_leaf or id(one) in flow.source) for one in op.inputs)
    cut = op.traits.kind is Kind.DETACH
    return [
        out for out in op.outputs
        if not out.requires_grad and out.is_floating_point() and (given or cut)
        and not any(out is one for one in op.inputs)
    ]  # fmt: skip


def kept_tensors(model: nn.Module, returned: Any) -> frozenset[int]:
    """Ids of the tensors that a model returned, or keeps in attributes, where a loss finds them."""
    stored = (value for module in model.modules() for name, value in vars(module).items() if name not in _OWN)
    return frozenset(id(one) for one in _tensors([returned, *stored], FOUND_IN))


_OWN = frozenset(vars(nn.Module()))


def _tensors(values: Iterable[Any], depth: int) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif depth and isinstance(value, Mapping):
            yield from _tensors(value.values(), depth - 1)
        elif depth and isinstance(value, (list, tuple, set)):
            yield from _tensors(value, depth - 1)
        elif depth and hasattr(value, "__dataclass_fields__"):
            yield from _tensors((getattr(value, name, None) for name in value.__dataclass_fields__), depth - 1)


def inner_reads(
    flow: Flow, state: Sequence[Slot], chosen: Mapping[int, list[int]], kept: Collection[int], first: int
) -> list[Slot]:
    """A slot for every value inside the steps that something else reads: zeros at first, then its values.

    `chosen`: the operations of the step, for one iteration of each class; `kept`: ids of tensors that are read where
    nothing was recorded; `first`: the index of the first new slot.
    """
    reads = _Reads(flow, chosen, kept)
    own = {number for slot in state for number in flow.held[slot.index].tolist()}
    found: dict[tuple[int, int], Slot] = {}
    for one, members in flow.twins.members.items():
        for j in chosen[one]:
            label, op = flow.loop.iterations[one][j]
            for n, out in enumerate(op.outputs):
                plain = out.requires_grad and not op.in_place and not any(out is given for given in op.inputs)
                if not plain or id(out) in own:
                    continue
                if (label, n) in found or reads.of(flow.twins.made(members, j, n)):
                    _add(found, (label, n), flow, members, j)
    for number, slot in enumerate(found.values()):
        slot.index, slot.name = first + number, f"inside {number}"
    return list(found.values())


def read_elsewhere(
    flow: Flow, state: Sequence[Slot], chosen: Mapping[int, list[int]], kept: Collection[int]
) -> frozenset[int]:
    """Ids of the states that need no gradient and that something beside the steps reads."""
    values = [value for slot in state for value in slot.values[1:] if not value.requires_grad]
    reads = _Reads(flow, chosen, kept) if values else None
    return frozenset(id(one) for one in values if reads is not None and reads.unfollowed(one))


def _add(found: dict[tuple[int, int], Slot], key: tuple[int, int], flow: Flow, members: Numbers, j: int) -> None:
    values = flow.twins.results(members, j, key[1])
    steps = len(flow.loop.iterations)
    nothing = torch.zeros_like(values[0], requires_grad=False)
    slot = found.setdefault(key, Slot(-1, [nothing] * (steps + 1), [-1] * steps))
    for i, value in zip(members.tolist(), values, strict=True):
        if value.shape == nothing.shape:
            slot.values[i + 1], slot.made[i] = value, j


class _Reads:
    """Which tensors are read by calls that are not part of the step, with a result that has a gradient."""

    def __init__(self, flow: Flow, chosen: Mapping[int, list[int]], kept: Collection[int]) -> None:
        self.table = table = flow.twins.table
        inside = np.zeros(len(table), dtype=bool)
        for one, members in flow.twins.members.items():
            for j in chosen[one]:
                inside[flow.twins.calls(members, j)] = True
        given = table.given
        count = given.count
        owner = np.repeat(np.arange(len(table)), count)
        at = np.repeat(given.start - np.cumsum(count) + count, count) + np.arange(len(owner))
        ids, outside = given.ids[at], ~inside[owner]
        order = np.argsort(ids[outside], kind="stable")
        self.ids, self.readers = ids[outside][order], owner[outside][order]
        self.kept = np.array(sorted(kept), dtype=np.int64)
        self._known: dict[int, bool] = {}

    def of(self, made: Numbers) -> bool:
        """Whether one of these tensors (ids) is read so."""
        if np.isin(made, self.kept).any():
            return True
        left, right = np.searchsorted(self.ids, made), np.searchsorted(self.ids, made, side="right")
        return any(
            self._followed(reader)
            for begin, end in zip(left.tolist(), right.tolist(), strict=True)
            for reader in self.readers[begin:end].tolist()
        )

    def unfollowed(self, value: Tensor) -> bool:
        """Whether something with a gradient is computed from a value that needs none, or a view of it (`w * h[0]`).

        Counter-example: `w * tanh(h)`, where autograd does not follow tanh either, is not noticed.
        """
        todo, seen = [id(value)], set()
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            if self.of(np.array([number])):
                return True
            left, right = np.searchsorted(self.ids, number), np.searchsorted(self.ids, number, side="right")
            for reader in self.readers[left:right].tolist():
                traits = self.table.op(reader).traits
                if traits.rearranges and traits.kind is not Kind.DETACH:
                    todo += [id(one) for one in results_of(self.table.calls[reader][3])]
        return False

    def _followed(self, call: int) -> bool:
        if call not in self._known:
            self._known[call] = any(one.requires_grad for one in results_of(self.table.calls[call][3]))
        return self._known[call]
