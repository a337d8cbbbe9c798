"""The steps of the inputs, followed through all operations of a run in their order, loops and fused modules included.

What an iteration computes from the loop's state is no longer a step of an input: the state holds all steps so far. When
a loop has ended, everything that its iteration i made belongs to the steps that iteration i read, so that a second
layer over the outputs of the first has its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.engine.model.batch import Batch
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.reads.spans import (
    SAME,
    SHUFFLING,
    Origins,
    Span,
    at_step,
    moved,
    moves,
    passed_on,
    steps_along,
    together,
)  # fmt: skip
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, given_to, name_of, results_of
from inspector.engine.recurrent.traced.record.operator_traits import Kind, operator_of
from inspector.engine.trace.reads import Reads

Pairs = dict[str, list[tuple[int, int]]]
"""Input → (first, last) step of everything that one iteration read of it."""
NOWHERE = -1


@dataclass(slots=True)
class FollowedLoop:
    """One state of one loop, with what its iterations read once the loop has ended.

    `written_out`: a layer of a module that the app has written out as a loop, whose steps depend on one input step
    each; between its chunks there may be those of the layers above, which read its outputs before it has ended.
    """

    flow: Flow
    state: Sequence[Slot]
    reads: Reads | None = None
    written_out: bool = False

    @property
    def last(self) -> int:
        """The number of its last call."""
        return max(own[-1] for own in self.flow.loop.iterations.numbers if own)


@dataclass(slots=True)
class Tracker:
    """Follows the inputs of a batch through the calls of a table. `run` fills `reads` of every loop, and `fused`.

    Attributes:
        fused: for every call of a fused module in their order: an id of one of its parameters, and what its steps read
            (None where that is not known).
        across: ids of parameters of fused modules that went along the batch's sequences instead of their steps.
    """

    table: Table
    batch: Batch
    loops: list[FollowedLoop]
    fused: list[tuple[int, Reads | None]] = field(default_factory=list)
    across: set[int] = field(default_factory=set)
    _origins: dict[int, dict[str, Span]] = field(default_factory=dict)
    _packed: dict[int, Reads] = field(default_factory=dict)
    _written: dict[int, list[tuple[Any, Tensor]]] = field(default_factory=dict)
    _loop: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _iteration: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _known: set[int] = field(default_factory=set)
    _early: list[int] = field(default_factory=list)
    """Ids of tensors of layers that go on later, whose origins count for the current call alone: the layer's own next
    step, which is given its state, does not read the input of the step before."""

    @torch.no_grad()
    def run(self, written: Sequence[Call]) -> None:
        """Follow all calls. `written`: the calls as they were recorded, with those that write into buffers."""
        for name, one in self.batch.named.items():
            if one.tensor is not None and one.axis:
                turned = self.batch[name]
                self._origins[id(one.tensor)] = {name: steps_along(one.tensor.shape, 1)}
                if turned is not one.tensor:
                    self._origins[id(turned)] = {name: steps_along(turned.shape, 0 if one.batch_dim == 1 else 1)}
        for call in written:
            if call[0] is Tensor.__setitem__ and isinstance(call[1][2], Tensor):
                self._written.setdefault(id(call[1][0]), []).append((call[1][1], call[1][2]))
        state = self._places()
        ending: dict[int, list[FollowedLoop]] = {}
        for loop in self.loops:
            ending.setdefault(loop.last, []).append(loop)
        for n, call in enumerate(self.table.calls):
            self._follow(n, call, bool(state[n]))
            while self._early:
                del self._origins[self._early.pop()]
            for loop in ending.get(n, ()):
                self._end(loop)

    def _places(self) -> npt.NDArray[np.bool_]:
        """Which calls depend on the state of a loop; in which loop and iteration each call is, into `_loop` and
        `_iteration`."""
        count = len(self.table)
        state = np.zeros(count, dtype=bool)
        self._loop, self._iteration = np.full(count, NOWHERE), np.full(count, NOWHERE)
        for k, loop in enumerate(self.loops):
            twins, bits = loop.flow.twins, sum(1 << slot.index for slot in loop.flow.slots)
            for i, own in enumerate(loop.flow.loop.iterations.numbers):
                self._loop[own], self._iteration[own] = k, i
            for i, members in twins.members.items():
                for j, reach in enumerate(loop.flow.reach[i]):
                    if reach & bits:
                        state[twins.calls(members, j)] = True
        return state

    def _follow(self, n: int, call: Call, of_state: bool) -> None:
        """What one call returns comes from the same steps as what it was given."""
        start, count = self.table.given.start[n], self.table.given.count[n]
        ids = self.table.given.ids[start : start + count].tolist()
        name = name_of(call[0])
        operator = operator_of(name)
        kind = operator.traits.kind
        if name == "_pack_padded_sequence":
            self._pack(call)
        if kind is Kind.FUSED and len(call[1]) > 3:
            self._through_module(call)
        elif (kind is Kind.JOIN and self._any_loop()) or (
            call[0] is not Tensor.__setitem__ and self._of_buffer(ids, call)
        ):
            for given in given_to(call):
                self._find(given, n)
        passes = kind is Kind.JOIN or moves(name, operator)  # `cat([x_t, h]).transpose(0, 1)` still has its step
        if (of_state and not passes) or (operator.in_place and kind is Kind.WRITE):
            return
        own = {number: self._origins[number] for number in ids if number in self._origins}
        if not own:
            own = self._steps_of_unknown(name, call)
        if not own or kind in (Kind.QUESTION, Kind.CREATION, Kind.RANDOM, Kind.CHOICE) or name.strip("_") in SHUFFLING:
            return
        outs = results_of(call[3])
        for which in dict.fromkeys(one for origins in own.values() for one in origins):
            spans = {number: origins[which] for number, origins in own.items() if which in origins}
            for out, span in zip(outs, self._through(name, call, spans, outs), strict=False):
                if span is not None:
                    self._origins.setdefault(id(out), {})[which] = span

    def _any_loop(self) -> bool:
        """Whether a loop has ended, or has iterations whose steps are known before it ends."""
        return bool(self._known) or any(loop.written_out for loop in self.loops)

    def _of_buffer(self, ids: Sequence[int], call: Call) -> bool:
        """Whether a call is given a tensor that was filled place by place, or a view of one."""
        return bool(self._written) and any(number in self._written for number in ids)

    def _through(self, name: str, call: Call, spans: Mapping[int, Span], outs: Sequence[Tensor]) -> list[Span | None]:
        operator = operator_of(name)
        kind, given = operator.traits.kind, given_to(call)
        tensors = {id(one): one for one in given}
        if kind in SAME or name in ("requires_grad_", "contiguous", "clone"):
            return [next(iter(spans.values()))]
        first = given[0] if given and kind is not Kind.JOIN else None
        if moves(name, operator) and (first is None or id(first) in spans):
            if first is None and len(spans) == len(tensors) and _all_one(list(spans.values())):
                one = next(iter(spans.values()))
                return [passed_on(one, given[0], out, operator) for out in outs]
            kept = spans if first is None else {id(first): spans[id(first)]}
            try:
                return list(moved(call[0], call[1], call[2] or {}, kept, first))
            except (RuntimeError, TypeError, ValueError, IndexError):
                return []  # a function of this name with arguments of another meaning
        found: list[Span | None] = []
        for out in outs[:1] if kind is Kind.FUSED else outs:
            merged: Span | None = None
            for number, span in spans.items():
                merged = together(merged, passed_on(span, tensors[number], out, operator))
            found.append(merged)
        return found

    def _steps_of_unknown(self, name: str, call: Call) -> dict[int, dict[str, Span]]:
        """A tensor of unknown origin from which steps are taken and of which one axis has as many as the input.

        Its steps are taken to be the input's: functions that are not recorded (a compiled one, one of another library)
        mostly leave steps in their order. Counter-example: one that reverses them.
        """
        given = given_to(call)
        first, name_in = given[0] if given else None, self.batch.primary
        steps = self.batch.steps
        if first is None or not moves(name, operator_of(name)) or steps < 2 or not first.is_floating_point():
            return {}
        fitting = [n for n, size in enumerate(first.shape) if size == steps]
        known = isinstance(first, torch.nn.Parameter) or self.table.maker(id(first)) is not None
        if known or len(fitting) != 1 or first.dim() < 2 or id(first) in self._written:
            return {}
        found = self._origins[id(first)] = {name_in: steps_along(first.shape, fitting[0])}
        return {id(first): found}

    def _through_module(self, call: Call) -> None:
        """Note what the steps of a fused module read: (t, b, i) or (b, t, i), by its last argument."""
        given, weights, batch_first = call[1][0], call[1][2], call[1][-1]
        if not isinstance(weights, (list, tuple)):  # a packed sequence: its sizes come before the state
            self.fused.append((id(call[1][3][0]), self._packed.get(id(given))))
            return
        axis = 1 if batch_first and given.dim() == 3 else 0
        origins = self._find(given)
        reads = None
        for name, span in origins.items():
            if span.high.shape[1 - axis] > 1 and span.high.shape[axis] == 1:
                self.across.add(id(weights[0]))
            reads = reads or _along(name, span, axis, self.batch.size)
        self.fused.append((id(weights[0]), reads))

    def _pack(self, call: Call) -> None:
        """What the steps of a packed sequence read, each for all sequences that have it."""
        given, batch_first = call[1][0], call[1][2]
        for name, span in self._find(given).items():
            reads = _along(name, span, 1 if batch_first else 0, self.batch.size)
            if reads is not None:
                self._packed.setdefault(id(results_of(call[3])[0]), reads)

    def _find(self, tensor: Tensor, reader: int | None = None) -> Origins:
        """Where a tensor's entries come from, those made in a loop that has ended and those of a buffer included.

        `reader`: the call that is given the tensor.
        """
        known = self._origins.get(id(tensor))
        if known is not None:
            return known
        found = self._of_iteration(tensor, reader)
        if not found and id(tensor) in self._written:
            found = self._of_places(tensor)
        if found:
            self._origins[id(tensor)] = found
        elif self._early and self._early[-1] == id(tensor):
            self._early.pop()
        return found

    def _of_iteration(self, tensor: Tensor, reader: int | None) -> dict[str, Span]:
        n = self.table.maker(id(tensor)) if self._any_loop() else None
        if n is None or self._loop[n] == NOWHERE:
            return {}
        if int(self._loop[n]) not in self._known:
            loop = self.loops[int(self._loop[n])]
            outside = reader is not None and self._loop[reader] != self._loop[n]
            if not (loop.written_out and outside):
                return {}
            self._early.append(id(tensor))
            return self._of_step(loop, int(self._iteration[n]), tensor)
        reads, i = self.loops[int(self._loop[n])].reads, int(self._iteration[n])
        if reads is None or reads.nothing or i >= len(reads):
            return {}
        return {reads.input: at_step(int(reads.low[i]), int(reads.high[i]), tensor.dim())}

    def _of_step(self, loop: FollowedLoop, i: int, tensor: Tensor) -> dict[str, Span]:
        """What one iteration of a layer that goes on later has read."""
        found: dict[str, Span] = {}
        for n in loop.flow.loop.iterations.numbers[i]:
            for given in given_to(self.table.calls[n]):
                known = {} if id(given) in self._early else self._origins.get(id(given), {})
                for name, span in known.items():
                    low, high = span.bounds()
                    if high >= 0:
                        found[name] = together(found.get(name), at_step(low, high, tensor.dim())) or found[name]
        return found

    def _of_places(self, tensor: Tensor) -> dict[str, Span]:
        """A buffer from what was written to its places."""
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for key, value in self._written.pop(id(tensor)):
            for name, span in self._find(value).items():
                low, high = span.bounds()
                numbers = found.setdefault(name, (_blank(tensor), _blank(tensor)))
                try:
                    numbers[0][_open(key)], numbers[1][_open(key)] = low + 1, high + 1
                except (IndexError, RuntimeError, TypeError):
                    return {}
        return {name: Span(low, high) for name, (low, high) in found.items()}

    def _end(self, loop: FollowedLoop) -> None:
        """A loop has ended: what each of its iterations read."""
        loop.reads = self._reads(loop)
        self._known.add(next(k for k, one in enumerate(self.loops) if one is loop))

    def _reads(self, loop: FollowedLoop) -> Reads:
        flow, twins = loop.flow, loop.flow.twins
        count = len(flow.loop.iterations)
        found: list[Pairs] = [{} for _ in range(count)]
        for first, members in twins.members.items():
            ops = flow.loop.iterations[first]
            for j in leading_to(flow, loop.state, first, through_others=True):
                op = ops[j][1]
                if moves(op.name, op.operator) and not op.in_place:
                    continue
                for i, n in zip(members.tolist(), twins.calls(members, j).tolist(), strict=True):
                    for given in given_to(self.table.calls[n]):
                        for name, span in self._find(given).items():
                            pair = span.bounds()
                            if pair[1] >= 0:
                                found[i].setdefault(name, []).append(pair)
        return _chosen(found, self.batch)


def _chosen(found: Sequence[Pairs], batch: Batch) -> Reads:
    """The input of which most iterations read steps that not all of them read (as in attention over all steps)."""
    names = [batch.primary, *(name for name in batch.named if name != batch.primary)]
    best, most = Reads("", np.full(len(found), -1), np.full(len(found), -1)), 0
    for name in names:
        own = [set(pairs.get(name, ())) for pairs in found]
        common = set.intersection(*own) if len(own) > 1 else set()
        left = [pairs - common for pairs in own]
        low = np.array([min((a for a, _ in pairs), default=-1) for pairs in left])
        high = np.array([max((b for _, b in pairs), default=-1) for pairs in left])
        if int((high >= 0).sum()) > most:
            best, most = Reads(name, low, high), int((high >= 0).sum())
    return best


def _along(name: str, span: Span, axis: int, size: int) -> Reads | None:
    """What each step along an axis reads; of a sequence that was cut into several, those of the first one."""
    if size == 1 and span.high.dim() == 3:
        span = Span(span.low.narrow(1 - axis, 0, 1), span.high.narrow(1 - axis, 0, 1))
    if span.axis() != axis:
        return None
    low, high = span.along().T.numpy()
    return Reads(name, low, high)


def _all_one(spans: Sequence[Span]) -> bool:
    return all(span.one for span in spans) and len({span.bounds() for span in spans}) == 1


def _blank(tensor: Tensor) -> Tensor:
    """A zero for every place of a buffer: its axes of steps and sequences, not that of its units."""
    shape = [size if n < 2 else 1 for n, size in enumerate(tensor.shape)]
    return torch.zeros(shape, dtype=torch.int32)


def _open(key: Any) -> Any:
    """A key for the first two axes. Raises TypeError for others."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(one is Ellipsis or one is None for one in keys):
        raise TypeError("not numbers and slices of the first axes")
    return tuple(keys[:2])
