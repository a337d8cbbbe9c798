"""The steps of a hand-written recurrence as autograd's graph of the run has them.

Quantities of the dynamics (Jacobians, spectra, lags) take a step from one state to the next, with detached values as if
they were not. The gradients of a run are others where something reads a value inside a step, and where the model cuts
the graph: there each such value is a further part of the state that no step reads, and detached values are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.assemble import parts_of, prefix_of, states_of, trained_of, use_of
from inspector.engine.recurrent.traced.cells.replayed import LARGEST, ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.program.inner_reads import inner_reads, read_elsewhere, stops_of
from inspector.engine.recurrent.traced.program.state_layout import Part
from inspector.engine.recurrent.traced.program.step_groups import Parameters, operations_of, programs_of
from inspector.engine.recurrent.traced.record.values import ids_of
from inspector.engine.recurrent.traced.state_checks import check_of
from inspector.engine.trace.trace import Recurrence


@dataclass(frozen=True, slots=True)
class AsRan:
    """A recurrence as autograd's graph has it.

    Attributes:
        recurrence: None where it is the same as that of the dynamics, or where it is not known.
        flow: with the values inside the steps; slots: those of the state, the values inside the steps last.
        stops: ids of values at which a gradient stops.
        read: ids of states that need no gradient and that something beside the steps reads.
        inside: the operations of the step, for one iteration of each class.
    """

    recurrence: ReplayRecurrence | None
    flow: Flow
    slots: list[Slot]
    stops: frozenset[int]
    read: frozenset[int] = frozenset()
    inside: Mapping[int, Sequence[int]] = field(default_factory=dict)


def as_it_ran(
    flow: Flow,
    state: list[Slot],
    found: Recurrence,
    made: Container[int],
    trained: Parameters,
    kept: Collection[int],
    *,
    cut: bool,
) -> AsRan:
    """The recurrence of these slots as autograd's graph has it.

    `kept`: ids of tensors that are read where nothing was recorded; `cut`: whether a gradient is cut in the steps.
    """
    stops = stops_of(flow)
    leading = {one: sorted(leading_to(flow, state, one)) for one in flow.twins.members}
    same = AsRan(None, flow, state, stops, inside=leading)
    if not isinstance(found, ReplayRecurrence) or flow.loop.depth:
        return same
    assert isinstance(found.cell, ReplayStep)
    try:
        names = trained_of(flow, found.cell, trained, prefix_of(found.place))
        chosen = operations_of(flow, found.cell.layout, state, names)
        same = replace(same, read=read_elsewhere(flow, state, chosen, kept), inside=chosen)
        inner = _with_a_batch(flow, inner_reads(flow, state, chosen, kept, len(flow.slots)), found.states.shape[1])
        if not inner and not cut and not stops:
            return same
        return _wider(same, found, inner, made, names)
    except (Unsupported, RuntimeError):
        return same  # what then does not add up is rejected where it would be shown


def _wider(
    same: AsRan, found: ReplayRecurrence, inner: list[tuple[Slot, Part]], made: Container[int], names: Parameters
) -> AsRan:
    """With the values inside the steps as further parts of the state. Raises Unsupported."""
    cell = found.cell
    assert isinstance(cell, ReplayStep)
    flow, added = same.flow, [slot for slot, _ in inner]
    slots = [*same.slots, *added]
    wider = replace(flow, slots=[*flow.slots, *added], held=[*flow.held, *(ids_of(slot.values) for slot in added)])
    parts = {**cell.layout, **{slot.name: part for slot, part in inner}}
    states = states_of(parts, slots)
    groups, still_cut = programs_of(wider, parts, slots, made, stops=same.stops)
    step = ReplayStep(parts, groups, found.steps, ())
    ran = ReplayRecurrence(found.place, found.module, step, found.x, states, found.lengths)
    ran.check = check_of(ran)
    if still_cut or states.shape[2] > LARGEST or not ran.check.passed:
        return same
    try:
        step.uses(use_of(wider, slots, step, states, made, names, prefix_of(found.place), same.stops))
    except Unsupported as reason:
        step.without = str(reason)
    return replace(same, recurrence=ran, flow=wider, slots=slots)


def _with_a_batch(flow: Flow, inner: list[Slot], size: int) -> list[tuple[Slot, Part]]:
    """Those that have one value a sequence, with their part of the state, numbered anew."""
    found: list[tuple[Slot, Part]] = []
    for slot in inner:
        try:
            (part,) = parts_of(flow, [slot], size).values()
        except Unsupported:
            continue
        slot.index = len(flow.slots) + len(found)
        found.append((slot, replace(part, slot=slot.index)))
    return found
