"""Linear recurrences in loops over the steps, which the search for loops found or, of complex states, did not show."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow as Loop
from inspector.engine.recurrent.traced.loops.carried_state import Slot
from inspector.engine.recurrent.traced.loops.unshown import COMPLEX, Unshown
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import name_of, results_of
from inspector.engine.recurrent.traced.record.places import place_of
from inspector.engine.scans.factors import PRODUCTS, SUMS
from inspector.engine.scans.loops import Looped, looped
from inspector.engine.scans.recurrences import MOST, recurrence_of
from inspector.engine.scans.search import Scan, Scans, steps_of, unique
from inspector.engine.scans.shown import stands_for
from inspector.engine.scans.step import DECAY, DiagonalStep, split
from inspector.engine.scans.values import Flow
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace

LINEAR = PRODUCTS | SUMS | {
    "__iadd__", "add_", "sub", "__sub__", "__rsub__", "sub_", "neg", "__neg__", "addcmul", "lerp", "clone", "to",
    "contiguous", "einsum", "unsqueeze", "squeeze", "view", "reshape", "expand", "__getitem__", "stack",
}  # fmt: skip
"""Operations that may lead from a state to the next one in a linear step. What passes is tried on values."""
NO_PARTS = (
    "The step of {} is made of sums and products alone, but no tensor of the run was found that is its decay or what "
    "it adds (as of h + Δ (A h + B x), which has neither), so the map that it may be equal to is not shown."
)
MOST_STEPS = 8192
"""Steps of a loop that is tried: what all its operations made is put side by side."""


def of_recurrence(loop: Loop, state: Sequence[Slot], recurrence: Recurrence, trace: Trace) -> None:
    """Where the step of a hand-written recurrence is linear entry by entry: its decays, and the map it stands for."""
    cell = recurrence.cell
    if not isinstance(recurrence, ReplayRecurrence) or not isinstance(cell, ReplayStep):
        return
    if not _may_be_linear(loop, state) or recurrence.check is None or not recurrence.check.passed:
        return
    (slot,) = state
    flow = Flow(loop.loop.iterations.table)
    batch = recurrence.states.shape[1]
    found = looped(flow, _sites(loop), slot.values[1:], batch, trace.look_at - recurrence.base)
    if found is None:
        trace.findings.of(Scans).unmapped[recurrence.place] = NO_PARTS.format(recurrence.place)
        return
    steps = steps_of(found.found, recurrence.steps, None)
    same = steps.h.shape == recurrence.states.shape and torch.equal(steps.h[1:].cpu(), recurrence.states[1:])
    if not same or not steps.check().passed:
        return
    decays = steps.a.to("cpu", recurrence.states.dtype).expand(recurrence.steps, *recurrence.states.shape[1:])
    cell.decays, cell.method = decays, ""
    _as_gate(recurrence, cell, decays)
    scans = trace.findings.of(Scans)
    attention, parts = stands_for(flow, found.found, steps, recurrence, trace.look_at, found.reading)
    scans.found.append(Scan(recurrence.place, recurrence.module, 0, recurrence, attention, parts))


def _may_be_linear(loop: Loop, state: Sequence[Slot]) -> bool:
    """Whether nothing but sums and products leads from the one part of the state to its next value."""
    if len(state) != 1 or state[0].lags or loop.loop.depth or not 4 <= len(loop.loop.iterations) <= MOST_STEPS:
        return False
    bits = 1 << state[0].index
    ops = loop.loop.iterations[1]
    return all(ops[j][1].name in LINEAR for j in leading_to(loop, state, 1) if loop.reach[1][j] & bits)


def _sites(loop: Loop) -> list[list[int]]:
    """For each operation that every iteration does, the numbers of its calls."""
    iterations = loop.loop.iterations
    rows = [
        dict(zip(labels, own, strict=True)) for labels, own in zip(iterations.labels, iterations.numbers, strict=True)
    ]
    return [[row[label] for row in rows] for label in rows[1] if all(label in row for row in rows)]


def _as_gate(recurrence: Recurrence, cell: ReplayStep, decays: Tensor) -> None:
    """The decay as a gate, where it lies between 0 and 1 and the step has no gate that keeps the state."""
    known = dict(zip(cell.gate_names, recurrence.known, strict=True))
    own = [values for values in known.values() if values.shape == decays.shape]
    if any(torch.allclose(values, kept) for values in own for kept in (decays, 1 - decays)):
        return
    if bool(((decays >= 0) & (decays <= 1)).all()):
        cell.gate_names = (*cell.gate_names, DECAY)
        recurrence.known = (*recurrence.known, decays)
        cell.gate_info = DiagonalStep.gate_info  # type: ignore[misc]
        cell.memory_gate = MemoryGate(DECAY, True, part=cell.main)  # type: ignore[misc]


def without_scans(
    table: Table, unshown: Iterable[Unshown], trace: Trace, emit: Emitter, names: Mapping[int, str]
) -> Iterator[Unshown]:
    """Loops that were not shown, without those of complex states that are linear recurrences: these are, then."""
    for one in unshown:
        if one.reason != COMPLEX or not of_complex(table, one.calls, trace, emit, names):
            yield one


def of_complex(table: Table, calls: Sequence[int], trace: Trace, emit: Emitter, names: Mapping[int, str]) -> bool:
    """Whether a loop that carries a complex state is a linear recurrence, which is then in the trace."""
    sites: dict[Hashable, list[int]] = {}
    for n in calls:
        sites.setdefault(_site(table, n), []).append(n)
    count = max(map(len, sites.values()), default=0)
    whole = [site for site in sites.values() if len(site) == count]
    if not 4 <= count <= MOST_STEPS:
        return False
    flow, samples = Flow(table), int(trace.batch.lengths.numel())
    for site in whole:
        states = [out for n in site for out in results_of(table.calls[n][3])[:1]]
        if len(states) != count or not states[0].is_complex() or states[0].numel() * count > MOST:
            continue
        found = looped(flow, whole, states, samples, trace.look_at)
        if found is not None:
            place, module = place_of(table, site[0], names)
            _show_complex(flow, found, states, unique(place, trace, emit), module, trace)
            return True
    return False


def _site(table: Table, n: int) -> Hashable:
    """Equal for the same call of each iteration; x.real is another function object at every access."""
    function, where, at = table.calls[n][0], table.calls[n][4], table.calls[n][5]
    return (
        (where[1].f_code, at, name_of(function)) if getattr(function, "__name__", "") == "__get__" else table.sites[n]
    )


def _show_complex(flow: Flow, found: Looped, states: Sequence[Tensor], place: str, module: str, trace: Trace) -> None:
    steps = steps_of(found.found, len(states), None)
    recurrence = recurrence_of(steps, place, module, trace)
    count, samples, entries = recurrence.states[1:].shape
    recurrence.delta = recurrence.states.new_full((count, samples, entries), torch.nan)
    for t, one in enumerate(states):
        trace.want_gradient(one, partial(_take, recurrence, found, t))
    if not any(one.requires_grad for one in states):
        recurrence.delta = None
    trace.recurrences.append(recurrence)
    attention, parts = stands_for(flow, found.found, steps, recurrence, trace.look_at, found.reading)
    trace.findings.of(Scans).found.append(Scan(place, module, 0, recurrence, attention, parts))


def _take(recurrence: Recurrence, found: Looped, t: int, gradient: Tensor | None) -> None:
    """The whole gradient of one state, which the next step has read; after the first one's, what arrives is known."""
    delta, cell = recurrence.delta, recurrence.cell
    assert delta is not None and isinstance(cell, DiagonalStep)
    if gradient is None:
        delta[t] = 0
    else:
        batch = found.found.layout.batch
        rows = gradient[None] if batch is None else gradient.movedim(batch - (found.found.layout.steps < batch), 0)
        delta[t] = split(rows.detach().flatten(1), cell.twofold).to(delta)
    if not bool(delta.isnan().any()):
        back = cell.conjugate(cell.decay(recurrence.x))
        recurrence.arriving = delta.clone()
        recurrence.arriving[:-1] -= cell.times(back[1:], delta[1:])
