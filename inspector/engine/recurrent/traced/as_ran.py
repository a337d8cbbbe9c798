"""The steps of a hand-written recurrence as autograd's graph of the run has them.

Quantities of the dynamics (Jacobians, spectra, lags) take a step from one state to the next, with detached values as if
they were not. The gradients of a run are others where something reads a value inside a step, and where the model cuts
the graph: there each such value is a further part of the state that no step reads, and detached values are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import replace

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.assemble import check_of, parts_of, prefix_of, states_of, trained_of, use_of
from inspector.engine.recurrent.traced.cells.replayed import LARGEST, ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.inner_reads import held_ids, inner_reads, stops_of
from inspector.engine.recurrent.traced.program.state_layout import Part
from inspector.engine.recurrent.traced.program.step_groups import Parameters, operations_of, programs_of


def graph_of(
    flow: Flow,
    state: list[Slot],
    found: ReplayRecurrence,
    made: Container[int],
    trained: Parameters,
    kept: Collection[int],
    *,
    cut: bool,
) -> tuple[ReplayRecurrence, Flow, list[Slot]] | None:
    """(the recurrence, the flow with the values inside its steps, the slots of its state); None where it is the same.

    `kept`: ids of tensors that are read where nothing was recorded; `cut`: whether a gradient is cut in the steps.
    """
    try:
        return _graph_of(flow, state, found, made, trained, kept, cut=cut)
    except (Unsupported, RuntimeError):
        return None  # what then does not add up is rejected where it would be shown


def _graph_of(
    flow: Flow,
    state: list[Slot],
    found: ReplayRecurrence,
    made: Container[int],
    trained: Parameters,
    kept: Collection[int],
    *,
    cut: bool,
) -> tuple[ReplayRecurrence, Flow, list[Slot]] | None:
    cell = found.cell
    assert isinstance(cell, ReplayStep)
    size = found.states.shape[1]
    names = trained_of(flow, cell, trained, prefix_of(found.place))
    stops = stops_of(flow)
    chosen = operations_of(flow, cell.layout, state, names, stops)
    inner = _with_a_batch(flow, inner_reads(flow, state, chosen, kept, len(flow.slots)), size)
    if not inner and not cut and not stops:
        return None
    slots = [*state, *(slot for slot, _ in inner)]
    wider = replace(flow, slots=[*flow.slots, *slots[len(state) :]], held=[*flow.held, *held_ids(slots[len(state) :])])
    parts = {**cell.layout, **{slot.name: part for slot, part in inner}}
    states = states_of(parts, slots)
    groups, still_cut = programs_of(wider, parts, slots, made, stops=stops)
    if still_cut or states.shape[2] > LARGEST:
        return None
    step = ReplayStep(parts, groups, found.steps, ())
    ran = ReplayRecurrence(found.place, found.module, step, found.x, states, found.lengths)
    ran.check = check_of(ran)
    if not ran.check.passed:
        return None
    try:
        step.uses(use_of(wider, slots, step, states, made, trained, prefix_of(found.place), stops))
    except Unsupported as reason:
        step.without = str(reason)
    return ran, wider, slots


def _with_a_batch(flow: Flow, inner: list[Slot], size: int) -> list[tuple[Slot, Part]]:
    """Those that have one value a sequence, with their part of the state, numbered anew."""
    found = []
    for slot in inner:
        try:
            (part,) = parts_of(flow, [slot], size).values()
        except Unsupported:
            continue
        slot.index = len(flow.slots) + len(found)
        found.append((slot, replace(part, slot=slot.index)))
    return found
