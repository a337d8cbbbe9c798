"""One run as it is and one with changes, as two frames of a capture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.interventions.editor import Editor, Target, WrittenOut, code_location, edited_input
from inspector.engine.interventions.heads import HeadEdits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import DEFAULTS, KeptTrace, RunOptions, perform
from inspector.engine.recurrent.traced.loops.carried_state import Flow
from inspector.engine.recurrent.traced.program.gates import found_gates
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.recorder import EAGER_LOOPS
from inspector.engine.recurrent.traced.recorded_loops import RecordedLoop, RecordedLoops
from inspector.engine.trace.emitter import Sink
from inspector.engine.trace.trace import Trace
from inspector.records import Channel, Edit, Frame, Page, Refusal
from inspector.records.run import EDITS

PROBES = ("handwritten", "attention")
"""The probe that records an edited run, in which torch's own modules are written out as loops."""

MISSING = (
    "{} is not found in the edited run, whose modules run step by step, so the edited frame does not show it; the "
    "output and the loss are those of the edited run."
)
ABSENT = (
    "It is not known of the edited run, whose modules run step by step and whose values are replaced at some steps; "
    "the unedited frame has it."
)
AHEAD = "/computed_ahead"
LOOKED_FOR = "looking for what is to be changed, in a run that is not shown"
WRITTEN = (
    "What is to be edited is made by an assignment to a part of it (h[…] = …), which no edit replaces; written with "
    "torch.where or torch.cat it can be edited."
)
OTHER = (
    "The recurrence at {} of the edited run, with {} entries of state, is not one of the unedited run: its Jacobians "
    "and lags cannot be compared with those."
)


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
    heads: HeadEdits | None = None

    @contextmanager
    def around(self) -> Iterator[None]:
        """Inside, the model is as the edited run needs it."""
        with ExitStack() as stack:
            for part in (self.loops, self.heads):
                if part is not None:
                    stack.enter_context(part.on())
            yield


def plan_edits(subject: Subject, batch: Batch, edits: Sequence[Edit], options: RunOptions = DEFAULTS) -> EditPlan:
    """Find what the edits change, by a pass that writes nothing.
    Raises InputError for edits of something that does not exist."""
    changed = edited_input(subject, batch, edits)
    heads = _head_edits(subject, changed, [edit for edit in edits if edit.of_heads], options)
    inner = [edit for edit in edits if not edit.of_input and not edit.of_heads]
    if not inner:
        return EditPlan(tuple(edits), changed, None, None, heads)
    loops = WrittenOut(subject.model)
    dry = _dry(subject, changed, loops, options)
    if loops.goes_on():  # the unedited run says whether the module's steps or the loop around it are the recurrence
        plain = perform(subject, changed, _Nowhere(), _brief(options))
        if loops.leave_to_loops({recurrence.place for recurrence in plain.recurrences}):
            dry = _dry(subject, changed, loops, options)
    return EditPlan(tuple(edits), changed, loops, editor_of(dry, inner), heads)


def _head_edits(subject: Subject, batch: Batch, edits: Sequence[Edit], options: RunOptions) -> HeadEdits | None:
    """The changes of heads, each of which was made once in a run that is not shown. Raises InputError."""
    if not edits:
        return None
    found = HeadEdits(subject.model, edits, batch)
    with found.on():
        trace = perform(subject, batch, _Nowhere(), _brief(options))
    if found.open:
        found.settle(perform(subject, batch, _Nowhere(), _brief(options)))
        with found.on():
            trace = perform(subject, batch, _Nowhere(), _brief(options))
    for edit in edits:
        if edit not in found.made:
            if found.problem:
                raise InputError(f"Heads of {edit.place} cannot be changed: {found.problem}.")
            known = ", ".join(dict.fromkeys(one.place for one in trace.attentions)) or "none"
            raise InputError(f"There is no attention at {edit.place!r} whose heads can be changed; there are {known}.")
    return found


def _brief(options: RunOptions) -> RunOptions:
    """Options of a run that is not shown; it can be cancelled, and says what it is for."""
    return RunOptions(
        only=("states",), seed=options.seed, states=options.states, cancelled=options.cancelled,
        progress=lambda _done, _total, _text: options.progress(0.0, 0.0, LOOKED_FOR),
    )  # fmt: skip


def _dry(subject: Subject, batch: Batch, loops: WrittenOut, options: RunOptions) -> Trace:
    """A run in which the modules are written out, without the changes; nothing of it is shown."""
    with loops.on():
        return perform(subject, batch, _Nowhere(), replace(_brief(options), probes=PROBES, places=loops.places))


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
    channels = _Channels(sink)
    sink = channels if plan is not None and plan.loops is not None else sink
    trace = perform(subject, batch, sink, options, frame=first)
    if plan is None:
        return trace
    said = [str(edit) for edit in plan.edits]
    second = Frame(index=1, label=", ".join(edit.words for edit in plan.edits), step=first.step, meta={EDITS: said})
    around = plan.around

    def keep(kept: KeptTrace) -> None:
        options.keep(replace(kept, around=around))

    if plan.loops is None:
        with around():
            return perform(subject, plan.batch, sink, replace(options, keep=keep), frame=second)
    with around():
        edited = replace(options, editor=plan.editor, probes=PROBES, places=plan.loops.places, keep=keep)
        after = perform(subject, plan.batch, sink, edited, frame=second)
    _say_what_differs(trace, after, sink, second)
    _say_what_is_missing(trace, after, channels, (first, second))
    return after


def _say_what_differs(before: Trace, after: Trace, sink: Sink, frame: Frame) -> None:
    """Refuse what only one of the frames shows, with the reason, in the edited one."""
    widths, edited = (
        {recurrence.place: recurrence.cell.state_size for recurrence in trace.recurrences} for trace in (before, after)
    )
    for place in widths.keys() | edited.keys():
        if place not in edited:
            sink.write(Refusal(f"{place}:h", MISSING.format(place), frame.index))
        elif widths.get(place) != edited[place]:
            sink.write(Refusal(f"{place}:h", OTHER.format(place, edited[place]), frame.index))


def _say_what_is_missing(before: Trace, after: Trace, channels: _Channels, frames: tuple[Frame, Frame]) -> None:
    """Refuse what the unedited frame shows of a recurrence that both have and the edited one does not."""
    places = {one.place for one in before.recurrences} & {one.place for one in after.recurrences}
    shown, own = (channels.shown.get(frame.index, set()) for frame in frames)
    for name in sorted(shown - own - channels.refused):
        if name.partition(":")[0] in places:
            channels.write(Refusal(name, ABSENT, frames[1].index))


class _Channels:
    """A sink that notes which channels have values in which frame, and which are refused in the edited one. Gates keep
    the titles that they have in the unedited one."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.titles: dict[str, str] = {}
        self.edited = False
        self.shown: dict[int, set[str]] = {}
        self.refused: set[str] = set()

    def write(self, record: Any) -> None:
        """Pass a record on."""
        if isinstance(record, Page):
            self.shown.setdefault(record.frame, set()).add(record.channel)
        elif isinstance(record, Refusal) and record.frame:
            if record.channel.endswith(AHEAD):
                return  # what is computed ahead there is how modules are written out, not the user's code
            self.refused.add(record.channel)
        elif isinstance(record, Frame):
            self.edited = record.edited
        elif isinstance(record, Channel) and record.kind == "gate":
            record = self._titled(record)
        self.sink.write(record)

    def _titled(self, gate: Channel) -> Channel:
        """The same gate has one title, also where its module runs step by step and only its name is known there."""
        if self.edited:
            return replace(gate, title=self.titles.get(gate.name, gate.title))
        self.titles[gate.name] = gate.title
        return gate


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
    what reads it undetached is to see the edit too. Raises InputError where no operation returns it."""
    op = flow.op(place)
    while op.traits.kind is Kind.DETACH and flow.source.get(id(op.inputs[0])) is not None:
        tensor = op.inputs[0]
        op = flow.op(flow.source[id(tensor)])
    if not any(tensor is out for out in op.outputs):
        raise InputError(WRITTEN)
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


def _of_layers(edit: Edit, flow: Flow, op: Op) -> list[tuple[Edit, Op, int, Tensor | None]]:
    """The edit of every layer whose state a written-out module joins with those of its other layers: what the module
    returns beside that, its output, is made of the same values. [] for any other operation."""
    if op.name != "stack" or op.chain[-1][0].f_code.co_filename != EAGER_LOOPS:
        return []
    width = op.inputs[0].shape[-1]
    found: list[tuple[Edit, Op, int, Tensor | None]] = []
    for layer, tensor in enumerate(op.inputs):
        place = flow.source.get(id(tensor))
        if place is None:
            return []
        if edit.unit is None or edit.unit // width == layer:
            own = edit if edit.unit is None else replace(edit, unit=edit.unit % width)
            found.append((own, *_maker(flow, place, tensor), None))
    return found


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
        for one, made_by, n, where in _of_layers(edit, flow, op) or [(edit, op, output, entry)]:
            owner = flow.loop.iterations.table.owners.of(made_by.chain[-1][0])
            location = code_location(made_by.chain, made_by.name, owner)
            editor.add(location, Target(one, n, frozenset({number[id(made_by)]}), where))
    if all(i < edit.start for i, _, _ in made[edit.signal]):
        raise InputError(f"{edit.place} has {len(flow.loop.iterations)} steps; there is no step {edit.start}.")
