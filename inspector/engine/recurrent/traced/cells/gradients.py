"""Gradients at the states of a hand-written recurrence, from the one backward pass of the run.

Autograd gives total derivatives on the unrolled graph. Where one part of the state is computed from another in the
same step (h = o tanh(c)), the gradient through it is subtracted, so that each part's gradient is at fixed values of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.graph import GraphRecurrence, GraphStep, no_way_back
from inspector.engine.recurrent.traced.cells.replayed import ReplayBlock, ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.loops.cuts import before_cut
from inspector.engine.recurrent.traced.program.slicing import Slicer
from inspector.engine.trace.trace import Trace

BLOCK, BUILT = 1024, 64
"""Steps through which gradients are propagated back together; fewer where Jacobians are built for it, of S² entries
each."""
NOISE = 64
"""Roundings below which the gradient from outside is taken for 0: it is a difference of two gradients. Counter-example:
a loss that is 10¹⁴ times smaller at one step than the gradient that comes back through it is lost there in float64."""
Known = ReplayRecurrence | GraphRecurrence


class Wanted:
    """The gradients of one recurrence's states: requested before the backward pass, arranged by step after it."""

    def __init__(self, flow: Flow, state: Sequence[Slot], cut: bool) -> None:
        self.flow, self.cut = flow, cut
        self.state = [before_cut(flow, slot) for slot in state]
        self.found: dict[tuple[int, int], Tensor] = {}
        self.graph = False
        self.slicers: dict[tuple[int, int], Slicer] = {}

    def ask(self, trace: Trace) -> None:
        """Request the gradient of every value that has one."""
        for slot in self.state:
            for i, value in enumerate(slot.values[1:]):
                if value.requires_grad and slot.made[i] >= 0:
                    trace.want_gradient(value, partial(self._take, slot.index, i))

    def _take(self, slot: int, i: int, gradient: Tensor | None) -> None:
        if gradient is not None:
            self.found[slot, i] = gradient.detach()

    def fill(self, recurrence: Known) -> None:
        """δ of every state, and the gradient that arrives at it from outside the recurrence (not where a gradient was
        cut).

        Raises Unsupported where autograd's graph, which it needs, has been freed.
        """
        if not self.found:
            return
        self.graph = isinstance(recurrence, GraphRecurrence)
        if recurrence.check is not None and not recurrence.check.passed:
            return
        delta = self._newest(recurrence)
        self._sent_back(recurrence, delta)
        recurrence.delta = delta
        if not self.cut:
            recurrence.arriving = _arriving(recurrence, delta)

    def _newest(self, recurrence: Known) -> Tensor:
        """δ of the parts that are not older values, step by step, with the others of the same step held fixed.

        A value that a step does not change is still the same tensor, and so is its gradient, less its part within that
        step. NaN where autograd has none: a step's value that depends on nothing that requires a gradient.
        """
        cell = recurrence.cell
        assert isinstance(cell, (ReplayStep, GraphStep))
        delta = torch.zeros_like(recurrence.states[1:])
        names = {part.slot: name for name, part in cell.layout.items() if part.lag == 0}
        before: dict[int, Tensor] = {}
        for i in range(delta.shape[0]):
            now: dict[int, Tensor] = {}
            for slot in sorted(self.state, key=lambda slot: -slot.made[i]):  # what is computed last comes first
                total = self._total(slot, i, before)
                later = [s for s in self.state if s.made[i] > slot.made[i] and s.index in now]
                if later:
                    total = total - self._through(i, slot, later, now)
                now[slot.index] = total
                name = names[slot.index]
                delta[i, :, cell.parts[name]] = cell.layout[name].rows(total).to(delta.dtype)
            before = now
        return delta

    def _total(self, slot: Slot, i: int, before: dict[int, Tensor]) -> Tensor:
        """The gradient of a part after step i, of everything that follows; `before`: of all parts a step earlier."""
        value = slot.values[i + 1]
        if slot.made[i] < 0:
            return before.get(slot.index, torch.zeros_like(value))
        if (slot.index, i) in self.found:
            return self.found[slot.index, i]
        known = value.requires_grad or self.cut
        return torch.zeros_like(value) if known else torch.full_like(value, torch.nan)

    def _through(self, i: int, slot: Slot, later: Sequence[Slot], known: dict[int, Tensor]) -> Tensor:
        """The gradient that reaches a value through later parts of the same step's state: Σ (∂q/∂p)ᵀ δ_q."""
        value = slot.values[i + 1]
        if self.graph:
            return _on_the_graph(value, later, known, i)
        inputs = {id(value): "p"}
        total = torch.zeros_like(value)
        for other in later:
            held = {**inputs, **{id(s.values[i + 1]): s.index for s in later if s is not other}}
            try:
                program, outside = self.slicers.setdefault((slot.index, other.index), Slicer(self.flow))(
                    i, held, [other.values[i + 1]]
                )
            except Unsupported:
                continue
            if not program.instructions:
                continue
            fixed = {s.index: s.values[i + 1].detach() for s in later if s is not other}

            def after(p: Tensor, run: Callable[..., list[Tensor]] = program.run, rest: dict[int, Tensor] = fixed,
                      given: list[Tensor] = outside) -> Tensor:  # fmt: skip
                return run({"p": p, **rest}, given)[0]

            with torch.enable_grad():
                back: Any = torch.func.vjp(after, value.detach())[1]
            total = total + back(known[other.index])[0].detach()
        return total

    def _sent_back(self, recurrence: Known, delta: Tensor) -> None:
        """Gradients that autograd does not give: those that the next step propagates back.

        These are the parts that are older values, and the initial values for as long as no step makes a new one.
        """
        cell = recurrence.cell
        assert isinstance(cell, (ReplayStep, GraphStep))
        old = {name: len(delta) for name, part in cell.layout.items() if part.lag}
        names = {part.slot: name for name, part in cell.layout.items() if part.lag == 0}
        for slot in self.state:
            first = next(i for i, made in enumerate(slot.made) if made >= 0)
            old |= {names[slot.index]: first} if first else {}
        for t in range(min(len(delta) - 1, max(old.values(), default=0)), 0, -1):
            back = recurrence.block(t, t + 1).vjp(delta[t : t + 1, ..., None])[0, ..., 0]
            for name, stop in old.items():
                if t <= stop:
                    delta[t - 1, :, cell.parts[name]] = back[:, cell.parts[name]]


def _on_the_graph(value: Tensor, later: Sequence[Slot], known: dict[int, Tensor], i: int) -> Tensor:
    """Σ_q D(q, p)ᵀ δ_q, total derivatives within one step as autograd's graph has them. Raises Unsupported."""
    outputs = [other.values[i + 1] for other in later]
    given = [known[other.index] for other in later]
    try:
        with torch.enable_grad():
            found = torch.autograd.grad(outputs, [value], given, retain_graph=True, allow_unused=True)[0]
    except RuntimeError as problem:
        raise no_way_back(problem) from None
    return torch.zeros_like(value) if found is None else found.detach()


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
        arriving[start - 1 : stop - 1] -= back
        size[start - 1 : stop - 1] = torch.maximum(size[start - 1 : stop - 1], back.abs().amax(-1))
    noise = arriving.abs().amax(-1) <= NOISE * torch.finfo(arriving.dtype).eps * size
    return arriving.masked_fill_(noise[..., None], 0)
