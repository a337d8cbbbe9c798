"""What a state has to be so that its steps can be run again (of one shape, every value still there), and whether they
come out the same."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence, ReplayStep
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.record.values import storage_of

ONE_SHOWS = "a run with one sequence alone shows it"
MOST_NAMED = 6
"""Shapes that a message lists."""
FILLED = (
    "its steps read what earlier steps wrote into a tensor that the loop fills, which is not followed; a list of "
    "states (torch.stack), or torch.cat, is"
)


def check_shapes(state: Sequence[Slot], batch: int = 1) -> None:
    """Raises Unsupported where the state has not the same shape at every step. `batch`: sequences of the run."""
    for slot in state:
        if slot.shapes:
            shapes = ", ".join(map(str, slot.shapes[:MOST_NAMED])) + (", …" if len(slot.shapes) > MOST_NAMED else "")
            more = f" (fewer sequences as they end: {ONE_SHOWS})" if _shrinks(slot, batch) else ""
            raise Unsupported(f"its state changes its shape: {shapes}{more}")


def _shrinks(slot: Slot, batch: int) -> bool:
    """Whether the shapes differ by how many of the sequences of a batch they have, as in packed sequences."""
    alike = all(slot.shapes) and len({shape[1:] for shape in slot.shapes}) == 1
    return batch > 1 and alike and max(shape[0] for shape in slot.shapes) == batch


def check_memory(flow: Flow, state: Sequence[Slot]) -> None:
    """Raises Unsupported where values of earlier steps have been written over."""
    _check_kept(flow, state)
    _check_filled(flow, state)


def _check_filled(flow: Flow, state: Sequence[Slot]) -> None:
    """Raises Unsupported where a step reads, in a tensor that the loop fills, what earlier steps made of the state."""
    bits = sum(1 << slot.index for slot in state)
    if not flow.changed:
        return
    filled = {
        storage: first for storage, places in flow.changed.items()
        if (first := min((i for i, j in places if flow.reach[i][j] & bits), default=-1)) >= 0
    }  # fmt: skip
    own = {number for held in flow.held for number in held.tolist()}
    for i in range(min(filled.values(), default=len(flow.loop.iterations)), len(flow.loop.iterations)):
        for j in leading_to(flow, state, i):
            op = flow.op((i, j))
            for given in () if op.traits.forgets or op.in_place else op.inputs:
                if id(given) not in own and filled.get(storage_of(given), i) < i and not _begun_in(flow, given, i):
                    raise Unsupported(FILLED)


def _begun_in(flow: Flow, tensor: Tensor, i: int) -> bool:
    """Whether iteration i writes every entry of a tensor's memory anew before it does anything else with it."""
    writes = [place for place in flow.changed[storage_of(tensor)] if place[0] == i]
    return bool(writes) and flow.op(writes[0]).replaces


def _check_kept(flow: Flow, state: Sequence[Slot]) -> None:
    for slot in state if flow.changed else ():
        for before, after, made in zip(slot.values, slot.values[1:], slot.made, strict=False):
            if made >= 0 and (before is after or (storage_of(after) in flow.changed and _overwritten(flow, after))):
                raise Unsupported(f"it changes its state {slot.name} in place, so earlier values are gone")


def _overwritten(flow: Flow, tensor: Tensor) -> bool:
    """True when a later iteration than the one that made it wrote into a tensor's memory."""
    made = flow.source[id(tensor)]
    return any(place[0] > made[0] for place in flow.changed[storage_of(tensor)])


def check_of(recurrence: ReplayRecurrence) -> Check:
    """Every step run again against what was recorded."""
    cell, states = recurrence.cell, recurrence.states
    assert isinstance(cell, ReplayStep)
    worst, size = 0.0, 1.0
    for group in cell.groups:
        with torch.no_grad():
            error = (cell.again(group, states[group.numbers]) - states[group.numbers + 1]).abs()
        worst = max(worst, float(error.nan_to_num_(0.0, 0.0, 0.0).max()) if error.numel() else 0.0)
    size = max(size, float(states.abs().nan_to_num_(0.0, 0.0, 0.0).max()) if states.numel() else size)
    kinds = {states.dtype, *(part.dtype for part in cell.layout.values() if part.dtype is not None)}
    return Check(worst, 64 * max(torch.finfo(kind).eps for kind in kinds) * size)
