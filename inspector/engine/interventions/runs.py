"""One run as it is and one with changes, as two frames of a capture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.interventions.editor import Editor, Target, WrittenOut, code_location, edited_input
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import DEFAULTS, KeptTrace, RunOptions, perform
from inspector.engine.recurrent.traced.loops.carried_state import Flow
from inspector.engine.recurrent.traced.program.gates import found_gates
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.recorded_loops import RecordedLoop, RecordedLoops
from inspector.engine.trace.emitter import Sink
from inspector.engine.trace.trace import Trace
from inspector.records import Edit, Frame

PROBES = ("handwritten", "attention")
"""The probe that records an edited run, in which torch's own modules are written out as loops."""


class _Nowhere:
    def write(self, record: Any) -> None:
        """The first pass is not shown."""


@dataclass(slots=True)
class EditPlan:
    """An edited run that is known to be possible: the changed input, and what replaces values in the middle of it."""

    edits: tuple[Edit, ...]
    batch: Batch
    loops: WrittenOut | None
    editor: Editor | None


def plan_edits(subject: Subject, batch: Batch, edits: Sequence[Edit], options: RunOptions = DEFAULTS) -> EditPlan:
    """Find what the edits change, by a pass that writes nothing.
    Raises InputError for edits of something that does not exist."""
    changed = edited_input(subject, batch, edits)
    inner = [edit for edit in edits if not edit.of_input]
    if not inner:
        return EditPlan(tuple(edits), changed, None, None)
    loops = WrittenOut(subject.model)
    with loops.on():
        dry = perform(
            subject, changed, _Nowhere(),
            RunOptions(only=("states",), seed=options.seed, states=options.states, probes=PROBES, places=loops.places),
        )  # fmt: skip
    return EditPlan(tuple(edits), changed, loops, editor_of(dry, inner))


def perform_with_edits(
    subject: Subject,
    batch: Batch,
    sink: Sink,
    plan: EditPlan | None,
    options: RunOptions = DEFAULTS,
    frame: Frame | None = None,
) -> Trace:
    """Frame 0 is the run as it is, frame 1 the edited one; without a plan there is only the first."""
    first = frame if frame is not None else Frame(index=0, label=batch.title)
    trace = perform(subject, batch, sink, options, frame=first)
    if plan is None:
        return trace
    second = Frame(index=1, label=", ".join(map(str, plan.edits)), step=first.step)
    if plan.loops is None:
        return perform(subject, plan.batch, sink, options, frame=second)
    around = plan.loops.on

    def keep(kept: KeptTrace) -> None:
        options.keep(replace(kept, around=around))

    with around():
        edited = replace(options, editor=plan.editor, probes=PROBES, places=plan.loops.places, keep=keep)
        return perform(subject, plan.batch, sink, edited, frame=second)


def editor_of(trace: Trace, edits: Sequence[Edit]) -> Editor:
    """What replaces the edited values, from a pass that recorded where they are computed. Raises InputError."""
    recorded = trace.findings.of(RecordedLoops)
    counts: dict[Any, int] = {}
    number: dict[int, int] = {}
    for op in recorded.operations:
        where = code_location(op.chain, op.name, recorded.owners.of(op.chain[-1][0]))
        number[id(op)] = counts[where] = counts.get(where, -1) + 1
    editor = Editor()
    for edit in edits:
        found = next((loop for loop in recorded.loops if loop.place == edit.place), None)
        if found is None:
            known = ", ".join(dict.fromkeys(loop.place for loop in recorded.loops)) or "none"
            raise InputError(f"There is no recurrence at {edit.place!r} that can be edited; there are {known}.")
        _aim(editor, edit, found, number)
    return editor


def _maker(flow: Flow, place: tuple[int, int], tensor: Tensor) -> tuple[Op, int]:
    """The operation that made a value and the number of its output; of a detached value the one that made it before:
    what reads it undetached is to see the edit too."""
    op = flow.op(place)
    while op.traits.kind is Kind.DETACH and flow.source.get(id(op.inputs[0])) is not None:
        tensor = op.inputs[0]
        op = flow.op(flow.source[id(tensor)])
    return op, op.output(tensor)


def _entry(edit: Edit, tensor: Tensor, size: int) -> Tensor | None:
    """True at one unit of a value with several axes of units (layers × units), which are numbered as they are shown.

    None where the last axis is all units. Raises InputError. The batch's axis is the first one of its size.
    """
    shape = list(tensor.shape)
    if size > 1 and size in shape:
        shape[shape.index(size)] = 1
    units = math.prod(shape)
    if edit.unit is None:
        return None
    if edit.unit >= units:
        raise InputError(f"{edit.place}:{edit.signal} has {units} units; there is no unit {edit.unit}.")
    if units == shape[-1]:
        return None
    entry = torch.zeros(shape, dtype=torch.bool)
    entry.view(-1)[edit.unit] = True
    return entry


def _aim(editor: Editor, edit: Edit, loop: RecordedLoop, number: dict[int, int]) -> None:
    flow, state = loop.flow, loop.state
    made = {slot.name: [(i, j, slot.values[i + 1]) for i, j in enumerate(slot.made) if j >= 0] for slot in state}
    states = set(made)
    for signal, i, j, tensor in found_gates(flow, state, loop.size):
        if signal not in states:  # tanh(c) is called c
            made.setdefault(signal, []).append((i, j, tensor))
    if edit.signal not in made:
        raise InputError(f"{edit.place} has no {edit.signal!r}; there are {', '.join(made)}.")
    for i, j, tensor in made[edit.signal]:
        if i < edit.start or (edit.stop is not None and i >= edit.stop):
            continue
        op, output = _maker(flow, (i, j), tensor)
        entry = _entry(edit, tensor, loop.size)
        owner = flow.loop.iterations.table.owners.of(op.chain[-1][0])
        editor.add(code_location(op.chain, op.name, owner), Target(edit, output, frozenset({number[id(op)]}), entry))
    if all(i < edit.start for i, _, _ in made[edit.signal]):
        raise InputError(f"{edit.place} has {len(flow.loop.iterations)} steps; there is no step {edit.start}.")
