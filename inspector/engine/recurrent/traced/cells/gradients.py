"""Gradients at the states of a hand-written recurrence, from the one backward pass of the run.

Autograd gives total derivatives on the unrolled graph. Where one part of the state is computed from another in the
same step (h = o tanh(c)), the gradient through it is subtracted, so that each part's gradient is at fixed values of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.graph import GraphRecurrence, GraphStep, no_way_back
from inspector.engine.recurrent.traced.cells.replayed import ReplayBlock, ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.cells.returned_twice import Returned, returned_twice
from inspector.engine.recurrent.traced.cells.unchanged import SPREAD, UnchangedStates
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.cell_functions import memory_of
from inspector.engine.recurrent.traced.program.slicing import Slicer
from inspector.engine.trace.gradient_hooks import without_hooks
from inspector.engine.trace.trace import Trace

BLOCK, BUILT = 1024, 64
"""Steps through which gradients are propagated back together; fewer where Jacobians are built for it, of S² entries
each."""
NOISE = 64
"""Roundings below which the gradient from outside is taken for 0: it is a difference of two gradients. Counter-example:
a loss that is 10¹⁴ times smaller at one step than the gradient that comes back through it is lost there in float64."""
SUMS = 4096
"""Roundings by which the gradient of a value that steps leave unchanged may differ from the sum over these steps."""
Known = ReplayRecurrence | GraphRecurrence


class Wanted:
    """The gradients of one recurrence's states: requested before the backward pass, arranged by step after it.

    Attributes:
        state: with the values as they were before they were detached at the end of a step.
        stops: ids of values at which a gradient stops; inner: numbers of the slots that are values inside a step.
        as_ran: the same for the recurrence as autograd's graph has it, where that is another one.
        read: ids of states that need no gradient and that more than the next step reads.
        unchanged: what reads the states that steps leave unchanged; None where that was not requested.
        dynamics: what reads the output of a fused module reads its state, too; as the graph has it they are two values.
    """

    def __init__(
        self, flow: Flow, state: Sequence[Slot], cut: bool, stops: Collection[int] = (), inner: Collection[int] = ()
    ) -> None:
        self.flow, self.state, self.cut, self.stops, self.inner = flow, list(state), cut, stops, inner
        self.found: dict[tuple[int, int], Tensor] = {}
        self.graph = False
        self.slicers: dict[tuple[int, int], Slicer] = {}
        self.as_ran: Wanted | None = None
        self.read: Collection[int] = ()
        self.unchanged: UnchangedStates | None = None
        self.dynamics = False
        self.twice: dict[tuple[int, int], tuple[Returned, ...]] = {}
        self.reached: dict[tuple[int, int, int], Tensor] = {}

    def ask(self, trace: Trace) -> None:
        """Request the gradient of every value that has one."""
        for slot in self.state:
            for i, value in enumerate(slot.values[1:]):
                if value.requires_grad and slot.made[i] >= 0:
                    trace.want_gradient(value, partial(self._take, slot.index, i))
                    self._ask_twice(trace, slot, i)

    def _ask_twice(self, trace: Trace, slot: Slot, i: int) -> None:
        """Request the gradients at the results of a fused module that have the values of this state."""
        found = returned_twice(self.flow, slot, i) if self.dynamics else ()
        if found:
            self.twice[slot.index, i] = found
        for n, one in enumerate(found):
            trace.want_gradient(one.value, partial(self._take_result, (slot.index, i, n)))

    def _take_result(self, key: tuple[int, int, int], gradient: Tensor | None) -> None:
        if gradient is not None:
            self.reached[key] = gradient.detach()

    def _take(self, slot: int, i: int, gradient: Tensor | None) -> None:
        if gradient is not None:
            self.found[slot, i] = gradient.detach()

    def hooked(self, tensors: Sequence[Tensor | None]) -> bool:
        """Whether one of these tensors is a state, or a value that the loop made."""
        changed = set(map(id, tensors))
        states = {id(value) for slot in self.state for value in slot.values}
        return any(number in states or number in self.flow.source for number in changed)

    def fill(self, recurrence: Known) -> None:
        """δ of every state, and the gradient that arrives at it from outside the recurrence (not where a gradient was
        cut).

        Raises Unsupported where autograd's graph, which it needs, has been freed, and where the gradient of a state
        that steps leave unchanged cannot be split by step; the recurrence then has no gradients.
        """
        if not self.found:
            return
        try:
            self._fill(recurrence)
        except Unsupported:
            recurrence.delta = recurrence.arriving = recurrence.ran = recurrence.inside = None
            raise

    def _fill(self, recurrence: Known) -> None:
        self.graph = isinstance(recurrence, GraphRecurrence)
        if recurrence.check is not None and not recurrence.check.passed:
            return
        delta = self._newest(recurrence)
        self._sent_back(recurrence, delta)
        if self.as_ran is None:
            self._check_unchanged(recurrence, delta)
        if not self.cut:
            recurrence.arriving = _arriving(recurrence, delta)
        recurrence.delta = delta
        if self.as_ran is not None:
            self.as_ran.read = self.read
            self._as_ran(self.as_ran, recurrence)
        self._forget_unknown(recurrence)  # last: what the next step sends back is not all that reaches them

    def _as_ran(self, wanted: Wanted, recurrence: Known) -> None:
        """Fill the recurrence as autograd's graph has it; it is dropped where nothing inside the steps has a gradient.

        What arrives at the states is then what arrives there alone, without what arrives inside the next step.
        """
        ran = recurrence.ran
        assert isinstance(ran, ReplayRecurrence)
        wanted.fill(ran)
        own = recurrence.states.shape[2]
        nothing = ran.arriving is None or not bool(ran.arriving[..., own:].any())
        if nothing and recurrence.arriving is not None and not self.stops:
            recurrence.ran = None
        elif ran.arriving is not None:
            self._take_over(recurrence, ran)
            ran.inside = _inside(recurrence, ran)
            if self.cut:
                recurrence.arriving = None
            else:
                recurrence.arriving = ran.arriving[..., :own] + (0 if ran.inside is None else ran.inside)

    def _take_over(self, recurrence: Known, ran: ReplayRecurrence) -> None:
        """Gradients that the next step sends back are those of the graph: the dynamics go through a detached value."""
        assert recurrence.delta is not None and ran.delta is not None
        for i, names in self._without_gradient(recurrence).items():
            for name in names:
                recurrence.delta[i, :, recurrence.cell.parts[name]] = ran.delta[i, :, ran.cell.parts[name]]

    def _newest(self, recurrence: Known) -> Tensor:
        """δ of the parts that are not older values, step by step, with the others of the same step held fixed.

        A value that a step does not change is still the same tensor, whose gradient is the sum over these steps; its
        part of each is added by `_sent_back`.
        """
        cell = recurrence.cell
        assert isinstance(cell, (ReplayStep, GraphStep))
        delta = torch.zeros_like(recurrence.states[1:])
        names = _names(recurrence)
        for i in range(delta.shape[0]):
            now: dict[int, Tensor] = {}
            totals: dict[int, Tensor] = {}
            rank = {slot.index: self._rank(slot, i) for slot in self.state}
            for slot in sorted(self.state, key=lambda slot: rank[slot.index]):
                totals[slot.index] = total = self._total(slot, i)
                later = [s for s in self.state if rank[s.index] < rank[slot.index] and s.index in now]
                if later:
                    total = total - self._through(i, slot, later, now, totals)
                now[slot.index] = total
                name = names[slot.index]
                delta[i, :, cell.parts[name]] = cell.layout[name].rows(total).to(delta.dtype)
        return delta

    def _rank(self, slot: Slot, i: int) -> tuple[int, bool]:
        """What is computed last in step i comes first; of an LSTM cell's outputs that is h, made of c."""
        if slot.made[i] < 0:
            return -slot.made[i], False
        return -slot.made[i], memory_of(self.flow.op((i, slot.made[i]))) is slot.values[i + 1]

    def _total(self, slot: Slot, i: int) -> Tensor:
        """The gradient of a part after step i, of everything that follows; 0 for those that `_sent_back` adds."""
        if slot.made[i] >= 0 and (slot.index, i) in self.twice:
            return self._sum_of_both(slot, i, lambda n, one: self.reached.get((slot.index, i, n)))
        if slot.made[i] >= 0 and (slot.index, i) in self.found:
            return self.found[slot.index, i]
        return torch.zeros_like(slot.values[i + 1])

    def _sum_of_both(self, slot: Slot, i: int, gradient: Callable[[int, Returned], Tensor | None]) -> Tensor:
        """The gradients at the results of a fused module that have a state's values, summed as one at the state."""
        value = slot.values[i + 1]
        total = torch.zeros_like(value, requires_grad=False)
        for n, one in enumerate(self.twice[slot.index, i]):
            found = gradient(n, one)
            total = total if found is None else total + one.sent(found, value)
        return total

    def _through(
        self, i: int, slot: Slot, later: Sequence[Slot], fixed: dict[int, Tensor], totals: dict[int, Tensor]
    ) -> Tensor:
        """What reaches a state through later parts of the same step's state, from every result that has its values."""
        if (slot.index, i) not in self.twice:
            return self._through_value(i, slot.values[i + 1], slot.index, later, fixed, totals)

        def of(n: int, one: Returned) -> Tensor:
            return self._through_value(i, one.value, -1 - 2 * slot.index - n, later, fixed, totals)

        return self._sum_of_both(slot, i, of)

    def _through_value(
        self, i: int, value: Tensor, number: int, later: Sequence[Slot], fixed: dict[int, Tensor],
        totals: dict[int, Tensor],
    ) -> Tensor:  # fmt: skip
        """The gradient that reaches a value p through later parts q of the same step's state.

        Σ_q (∂q/∂p)ᵀ g_q with the other parts held fixed in ∂q/∂p and g_q the total gradient, which has the paths from q
        through parts that come later still (of three parts that read each other, the path p → q → r is in g_q).
        On autograd's graph ∂q/∂p has those paths, and what is multiplied is δ_q, the others `fixed`.
        """
        if self.graph:
            return _on_the_graph(value, later, fixed, i)
        inputs = {id(value): "p"}
        total = torch.zeros_like(value)
        for other in later:
            held = {**inputs, **{id(s.values[i + 1]): s.index for s in later if s is not other}}
            try:
                program, outside = self.slicers.setdefault(
                    (number, other.index), Slicer(self.flow, (), self.stops, within=True)
                )(i, held, [other.values[i + 1]])
            except Unsupported:
                continue
            if not program.instructions:
                continue
            others = {s.index: s.values[i + 1].detach() for s in later if s is not other}

            def after(p: Tensor, run: Callable[..., list[Tensor]] = program.run, rest: dict[int, Tensor] = others,
                      given: list[Tensor] = outside) -> Tensor:  # fmt: skip
                return run({"p": p, **rest}, given)[0]

            with torch.enable_grad():
                back: Any = torch.func.vjp(after, value.detach())[1]
            total = total + back(totals[other.index])[0].detach()
        return total

    def _sent_back(self, recurrence: Known, delta: Tensor) -> None:
        """Gradients that autograd does not give: those that the next step propagates back.

        These are the parts that are older values, the initial values for as long as no step makes a new one, values
        that need no gradient (a first state that no parameter made, a state that was detached), and values that a step
        left unchanged, to which what reads them at that step is added.
        """
        cell, needed = recurrence.cell, self._without_gradient(recurrence)
        assert isinstance(cell, (ReplayStep, GraphStep))
        for name, part in cell.layout.items():
            for i in range(len(delta) - 1) if part.lag else ():
                needed.setdefault(i, []).append(name)
        for i in sorted(needed, reverse=True):
            back = self._back(recurrence, delta, i)
            for name in needed[i]:
                delta[i, :, cell.parts[name]] = self._read_at(recurrence, name, i) + back[:, cell.parts[name]]

    def _back(self, recurrence: Known, delta: Tensor, i: int) -> Tensor:
        """(b, s): what the step after step i sends back; 0 after the last one."""
        if i + 1 >= len(delta):
            return torch.zeros_like(delta[i])
        back = recurrence.block(i + 1, i + 2).vjp(delta[i + 1 : i + 2, ..., None])[0, ..., 0]
        return back * recurrence.cuts[i + 1].to(back) if i + 1 in recurrence.cuts else back

    def _read_at(self, recurrence: Known, name: str, i: int) -> Tensor | float:
        """(b, n) what arrives at a part that step i left unchanged, or that it made and the next one did not change."""
        assert isinstance(recurrence.cell, (ReplayStep, GraphStep))
        part = recurrence.cell.layout[name]
        found = None if self.unchanged is None or part.lag else self.unchanged.arriving(part.slot, i)
        return 0.0 if found is None else part.rows(found).to(recurrence.states.dtype)

    def _check_unchanged(self, recurrence: Known, delta: Tensor) -> None:
        """Compare autograd's gradient of a value that steps leave unchanged with the sum of what was found for them.

        Raises Unsupported where a reader was not found, or where it is not known at which of the steps it reads.
        """
        if self.unchanged is None or not self.unchanged.slots:
            return
        names = _names(recurrence)
        for slot in self.unchanged.slots:
            if slot.index in self.unchanged.unknown:
                step = int(np.nonzero(self.unchanged.held[slot.index])[0][0])
                raise Unsupported(_spread(recurrence, slot, step))
            held = self.unchanged.held[slot.index]
            name = names[slot.index]
            part = recurrence.cell.parts[name]
            for i in (int(n) for n in np.nonzero(held[1:] & ~held[:-1])[0]):
                if not slot.values[i + 1].requires_grad:
                    continue
                back = self._back(recurrence, delta, i)[:, part]
                found, size = self._read_at(recurrence, name, i) + back, delta[i, :, part]
                most = float(torch.stack((size.abs(), back.abs())).nan_to_num(0.0, 0.0, 0.0).max())
                off = float((found - size).abs().nan_to_num(0.0, 0.0, 0.0).max())
                if off > SUMS * torch.finfo(delta.dtype).eps * most:
                    raise Unsupported(_spread(recurrence, slot, i + 1))

    def _without_gradient(self, recurrence: Known) -> dict[int, list[str]]:
        """{step: names of the parts whose value after it needs no gradient, or has been left unchanged by it}."""
        found: dict[int, list[str]] = {}
        names = _names(recurrence)
        for slot in self.state:
            first = next(i for i, made in enumerate(slot.made) if made >= 0)
            for i, value in enumerate(slot.values[1:]):
                kept = slot.made[i] < 0 and slot.index not in self.inner
                if kept or i < first or not (value.requires_grad or slot.index in self.inner):
                    found.setdefault(i, []).append(names[slot.index])
        return found

    def _forget_unknown(self, recurrence: Known) -> None:
        """NaN for values that need no gradient and are read by more than the next step: what reads them is not known.

        In that case autograd has not followed the value, and its gradient is more than the next step sends back.
        """
        names = _names(recurrence)
        unseen = () if self.unchanged is None else self.unchanged.unseen
        for slot in self.state:
            for i, value in enumerate(slot.values[1:]):
                made = slot.made[i] >= 0 and not value.requires_grad and id(value) in self.read
                if made or (slot.index, i) in unseen:
                    recurrence.leave_out(i, recurrence.cell.parts[names[slot.index]])


def _spread(recurrence: Known, slot: Slot, step: int) -> str:
    return SPREAD.format(place=recurrence.place, name=slot.written or slot.name, step=step)


def _names(recurrence: Known) -> dict[int, str]:
    """{number of a slot: name of the part that is its newest value}."""
    assert isinstance(recurrence.cell, (ReplayStep, GraphStep))
    return {part.slot: name for name, part in recurrence.cell.layout.items() if part.lag == 0}


def _on_the_graph(value: Tensor, later: Sequence[Slot], known: dict[int, Tensor], i: int) -> Tensor:
    """Σ_q D(q, p)ᵀ δ_q, total derivatives within one step as autograd's graph has them. Raises Unsupported."""
    outputs = [other.values[i + 1] for other in later]
    given = [known[other.index] for other in later]
    try:
        with torch.enable_grad(), without_hooks():
            found = torch.autograd.grad(outputs, [value], given, retain_graph=True, allow_unused=True)[0]
    except RuntimeError as problem:
        raise no_way_back(problem) from None
    return torch.zeros_like(value) if found is None else found.detach()


def _inside(recurrence: Known, ran: ReplayRecurrence) -> Tensor | None:
    """What the loss sends to the new state through values inside the same step that were computed from it.

    Such a value is a part of the state of `ran`, and what reaches the other parts there is at fixed values of it; the
    total gradient of the dynamics has the path through it. 0 where the difference is only rounding.
    """
    assert recurrence.delta is not None and ran.delta is not None
    own = recurrence.delta.shape[2]
    found = (recurrence.delta - ran.delta[..., :own]).nan_to_num_(0.0, 0.0, 0.0)
    size = torch.maximum(recurrence.delta.abs().amax(-1), ran.delta.abs().amax(-1)).nan_to_num_(0.0)
    noise = found.abs().amax(-1) <= NOISE * torch.finfo(found.dtype).eps * size
    found.masked_fill_(noise[..., None], 0)
    return found if bool(found.any()) else None


def _arriving(recurrence: Known, delta: Tensor) -> Tensor:
    """a_t = δ_t − J_{t+1}ᵀ δ_{t+1}; 0 where that is only rounding."""
    delta = delta.nan_to_num(0.0, torch.inf, -torch.inf) if bool(delta.isnan().any()) else delta
    arriving = delta.clone()
    size = delta.abs().amax(-1)
    count = BLOCK if isinstance(recurrence, ReplayRecurrence) else BUILT
    for start in range(1, len(delta), count):
        stop = min(start + count, len(delta))
        block = recurrence.block(start, stop)
        if isinstance(block, ReplayBlock):
            back = block.pulled(delta[start:stop])
        else:
            back = block.vjp(delta[start:stop, ..., None])[..., 0]
        for step in recurrence.cuts.keys() & set(range(start, stop)):
            back[step - start] *= recurrence.cuts[step].to(back)
        arriving[start - 1 : stop - 1] -= back
        size[start - 1 : stop - 1] = torch.maximum(size[start - 1 : stop - 1], back.abs().amax(-1))
    noise = arriving.abs().amax(-1) <= NOISE * torch.finfo(arriving.dtype).eps * size
    return arriving.masked_fill_(noise[..., None], 0)


def ask_weights(
    flow: Flow, recurrence: ReplayRecurrence | GraphRecurrence, trace: Trace, trained: Mapping[int, str]
) -> None:
    """Request the gradients of the weights that the loop reads, by which sums over steps are checked."""
    read = flow.twins.used(trained.keys())
    recurrence.weights = partial(dict, {trained[id(one)]: one for one in read})
    trace.parameter_gradients.ask(trace.want_gradient, read)
    trace.parameter_gradients.ask_made(trace.want_gradient, read)
