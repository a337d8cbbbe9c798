"""What reads a state that a step leaves unchanged: which part of its gradient arrives at which step.

After such steps the state is one tensor, and autograd gives one gradient for it, the sum over all of them. The gradient
that each reader outside the recurrence sends back is taken at its node of autograd's graph, and the reader's iteration
says to which step it belongs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operation import results_of
from inspector.engine.recurrent.traced.record.values import Numbers
from inspector.engine.trace.trace import Trace

MOST_NODES = 64
"""Nodes of autograd's graph of one operation that are examined for the one that reads a value. Counter-example: a
list of more than 64 states that torch stacks as one node each; at which step each is read is then not known."""
MOST_LAGS = 64
"""Steps back from its own iteration at which a reader's state is looked for."""
SPREAD = (
    "Steps of {place} leave {name} unchanged (the first one is step {step}), and something reads it of which it cannot "
    "be told at which of these steps, so gradients by step are not known. A copy at every step (`{name} = {name} * 1`) "
    "tells them apart."
)


class UnchangedStates:
    """The gradients that readers outside the recurrence send to states which steps leave unchanged.

    Attributes:
        held: number of a slot → for each step whether its value after it is the one before it.
        unknown: slots with a reader of which it is not known at which step it reads.
        unseen: (slot, step) of initial values without a gradient that something reads after the step.
    """

    def __init__(self, flow: Flow, state: Sequence[Slot], inside: Mapping[int, Sequence[int]]) -> None:
        """`inside`: the operations of the step, for one iteration of each class."""
        self.flow = flow
        self.held = {slot.index: np.array(slot.made) < 0 for slot in state if min(slot.made) < 0}
        self.slots = [slot for slot in state if slot.index in self.held]
        self.unknown: set[int] = set()
        self.unseen: set[tuple[int, int]] = set()
        self._found: dict[tuple[int, int], Tensor] = {}
        self._readers = _Readers(flow, inside) if self.slots else None

    def ask(self, trace: Trace) -> None:
        """Request what every reader outside the recurrence sends back. Call before the backward pass."""
        for slot in self.slots:
            spans = _spans(slot)
            offsets = self._offsets(spans)
            for value, steps in spans:
                if len(steps) > 1 or steps[0] < 0 <= steps[-1]:
                    self._ask(trace, slot, value, steps, offsets)
        self._readers = None

    def arriving(self, slot: int, step: int) -> Tensor | None:
        """The gradient that readers of a slot's value after a step send to it; None where there is none."""
        return self._found.get((slot, step))

    def _offsets(self, spans: Sequence[tuple[Tensor, range]]) -> dict[tuple[int, int], set[int]]:
        """(label, number of its input) of a reader → how many iterations before its own the step may be whose state it
        reads.

        0 where it reads what its own iteration made, 1 where it comes before that. Where a state is new it shows which.
        Before the first step there is only the initial value.
        """
        assert self._readers is not None
        found: dict[tuple[int, int], set[int]] = {}
        for value, steps in spans:
            for call, n in self._readers.of(id(value)):
                for i, label in self._readers.place(call):
                    nearest = i - min(i, steps[-1])
                    most = nearest + MOST_LAGS if steps[0] < 0 else min(i - steps[0], nearest + MOST_LAGS)
                    may = set(range(nearest, most + 1))
                    found[label, n] = found.get((label, n), may) & may
        return found

    def _ask(
        self, trace: Trace, slot: Slot, value: Tensor, steps: range, offsets: Mapping[tuple[int, int], set[int]]
    ) -> None:
        assert self._readers is not None
        for call, inputs in self._readers.calls(id(value)).items():
            at = self._steps(slot, call, inputs, steps, offsets)
            if not value.requires_grad:
                read = self._readers.counts(call)
                self.unseen |= {(slot.index, i) for i in ((steps if at is None else at) if read else ()) if i >= 0}
                continue
            edges = self._readers.edges(call, value)
            if edges is not None and not edges:
                continue
            if at is None or edges is None or (len(edges) != len(at) and len(set(at)) > 1):
                self.unknown.add(slot.index)
                continue
            for n, (node, k) in enumerate(edges):
                step = at[n] if len(at) == len(edges) else at[0]
                if step >= 0:
                    trace.want_part(node, k, partial(self._take, (slot.index, step)))

    def _take(self, key: tuple[int, int], gradient: Tensor | None) -> None:
        if gradient is not None:
            gradient = gradient.detach()
            self._found[key] = self._found[key] + gradient if key in self._found else gradient

    def _steps(
        self, slot: Slot, call: int, inputs: list[int], steps: range, offsets: Mapping[tuple[int, int], set[int]]
    ) -> list[int] | None:
        """For each input that is the value the step after which it is read; −1 before the first; None: not known."""
        assert self._readers is not None
        place = self._readers.place(call)
        if not place:
            return self._after_the_loop(slot, call, steps, len(inputs))
        i, label = place[0]
        lags = [min(offsets.get((label, n), ()), default=None) for n in inputs]
        return None if None in lags else [max(i - lag, -1) for lag in lags if lag is not None]

    def _after_the_loop(self, slot: Slot, call: int, steps: range, count: int) -> list[int] | None:
        """A reader after the loop: of the last state, or of a list of states, one a step or one for each new value."""
        assert self._readers is not None
        if call < self._readers.first:
            return [-1] * count
        begin = next(i for i, made in enumerate(slot.made) if made >= 0)
        ids = [id(value) for value in slot.values[begin + 1 :]]
        known, own = set(ids), id(slot.values[steps[-1] + 1])
        given = [number for number in self._readers.given(call) if number in known]
        if steps[0] < 0 or (len(given) == 1 and len(known) > 1):
            return [steps[-1]] if steps[-1] == len(slot.made) - 1 else None
        if given == ids:
            return [begin + n for n, number in enumerate(given) if number == own]
        if given == list(dict.fromkeys(ids)):
            return [steps[0]] * count
        return None


def _spans(slot: Slot) -> list[tuple[Tensor, range]]:
    """Each value, and the steps after which it is the slot's value; −1 for what it was before the first."""
    starts = [-1, *(i for i, made in enumerate(slot.made) if made >= 0), len(slot.made)]
    return [(slot.values[a + 1], range(a, b)) for a, b in pairwise(starts)]


class _Readers:
    """The recorded calls that read tensors and are not part of the step.

    `first`: the number of the loop's first call.
    """

    def __init__(self, flow: Flow, inside: Mapping[int, Sequence[int]]) -> None:
        self.table, self.flow = flow.twins.table, flow
        own = np.zeros(len(self.table), dtype=bool)
        for one, members in flow.twins.members.items():
            for j in inside[one]:
                own[flow.twins.calls(members, j)] = True
        count = self.table.given.count
        owner = np.repeat(np.arange(len(self.table)), count)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        ids = self.table.given.ids[self.table.given.start[owner] + number]
        outside = ~own[owner]
        order = np.argsort(ids[outside], kind="stable")
        self._ids, self._owner, self._number = ids[outside][order], owner[outside][order], number[outside][order]
        numbers = flow.loop.iterations.numbers
        self._begin: Numbers = np.array([calls[0] for calls in numbers if calls])
        self._which = [i for i, calls in enumerate(numbers) if calls]
        self.first, self._last = int(self._begin[0]), max(max(calls) for calls in numbers if calls)

    def of(self, tensor: int) -> list[tuple[int, int]]:
        """(call, number of its input) of all readers of a tensor, by its id."""
        left, right = np.searchsorted(self._ids, tensor), np.searchsorted(self._ids, tensor, side="right")
        return list(zip(self._owner[left:right].tolist(), self._number[left:right].tolist(), strict=True))

    def calls(self, tensor: int) -> dict[int, list[int]]:
        """Call → the numbers of its inputs that are a tensor."""
        found: dict[int, list[int]] = {}
        for call, n in self.of(tensor):
            found.setdefault(call, []).append(n)
        return found

    def place(self, call: int) -> list[tuple[int, int]]:
        """[(iteration, label)] of a call; label −1 where it has none; [] before and after the loop."""
        if not self.first <= call <= self._last:
            return []
        i = self._which[int(np.searchsorted(self._begin, call, side="right")) - 1]
        numbers, labels = self.flow.loop.iterations.numbers[i], self.flow.loop.iterations.labels[i]
        return [(i, labels[numbers.index(call)] if call in numbers else -1)]

    def given(self, call: int) -> list[int]:
        """The ids of a call's inputs."""
        found: list[int] = self.table.given.of(np.array([call])).tolist()
        return found

    def counts(self, call: int) -> bool:
        """Whether a call's result may depend on the values that it reads."""
        op = self.table.op(call)
        return not op.traits.forgets and (not op.outputs or any(one.is_floating_point() for one in op.outputs))

    def edges(self, call: int, value: Tensor) -> list[tuple[Any, int]] | None:
        """(node, number of its input) of autograd's graph by which a call reads a value; None where that is not found.

        Only the nodes between the call's results and its inputs are examined.
        """
        op = self.table.op(call)
        results = [one for one in results_of(self.table.calls[call][3]) if one.requires_grad]
        if not results:
            return [] if op.outputs else None  # a call without results writes into something
        target = get_gradient_edge(value)
        ends = {get_gradient_edge(one).node for one in op.inputs if one.requires_grad}
        if op.in_place or any(one is given for one in results for given in op.inputs):
            return None if op.in_place else []
        waiting, seen, found = [get_gradient_edge(one).node for one in results], set(), []
        while waiting:
            node = waiting.pop(0)
            if node in seen:
                continue
            seen.add(node)
            if len(seen) > MOST_NODES:
                return None
            for k, (before, number) in enumerate(node.next_functions):
                if before is target.node and number == target.output_nr:
                    found.append((node, k))
                elif before is not None and before not in ends:
                    waiting.append(before)
        return found
