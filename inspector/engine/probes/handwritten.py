"""Recurrences that a user wrote as Python loops over ordinary operations, captured without changing their code.

Every torch operation of the forward pass is recorded with its place in the code; afterwards loops are found, the state
that they carry from iteration to iteration, the gates in between, and the operations of each step as a program whose
derivatives torch.func computes (engine/recurrent/traced/). Loops over torch's own cells are left to the probe for their
family.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import CodeType

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from inspector.engine.cells.family import is_opaque, sequence_family, step_family
from inspector.engine.errors import CancelledError, Unsupported
from inspector.engine.hooks.function_mode import FUSED, runs_fused, unwatched
from inspector.engine.hooks.module_stack import ModuleStack
from inspector.engine.latent.written import find_written
from inspector.engine.recurrent.traced.as_ran import as_it_ran
from inspector.engine.recurrent.traced.assemble import ROOT, corrected, place_of_step, recurrence_of
from inspector.engine.recurrent.traced.cells.gradients import Wanted, ask_weights
from inspector.engine.recurrent.traced.cells.graph import GraphRecurrence
from inspector.engine.recurrent.traced.cells.hooked import refuse_hooked
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence
from inspector.engine.recurrent.traced.cells.unchanged import UnchangedStates
from inspector.engine.recurrent.traced.layer_names import is_regular, layer_names, may_be_a_stack, within
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot, analyse
from inspector.engine.recurrent.traced.loops.cuts import as_made
from inspector.engine.recurrent.traced.loops.detection import find_loops, loops_inside
from inspector.engine.recurrent.traced.loops.ends_apart import join_ends
from inspector.engine.recurrent.traced.loops.loop import Loop, where_of
from inspector.engine.recurrent.traced.loops.sequences import is_sequence
from inspector.engine.recurrent.traced.loops.state_choice import states
from inspector.engine.recurrent.traced.loops.unshown import unshown
from inspector.engine.recurrent.traced.loops.written_out import is_written_out, place_of_sequence, written_out
from inspector.engine.recurrent.traced.origins import Origins, inputs_of
from inspector.engine.recurrent.traced.program.gates import leading_to, steps_of
from inspector.engine.recurrent.traced.program.inner_cells import cells_within, fused_within, of_a_cell, of_a_family
from inspector.engine.recurrent.traced.program.inner_reads import kept_tensors
from inspector.engine.recurrent.traced.program.made_ahead import weights_ahead
from inspector.engine.recurrent.traced.reads.of_loops import LoopRead, cells_read, record_reads
from inspector.engine.recurrent.traced.reads.tracking import FollowedLoop
from inspector.engine.recurrent.traced.record.buffers import resolved
from inspector.engine.recurrent.traced.record.growing_tensors import with_lists
from inspector.engine.recurrent.traced.record.hook_copies import without_copies
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call
from inspector.engine.recurrent.traced.record.recorder import OperationRecorder
from inspector.engine.recurrent.traced.recorded_loops import RecordedLoop, RecordedLoops
from inspector.engine.recurrent.traced.state_checks import ONE_SHOWS
from inspector.engine.recurrent.traced.surroundings import note_surroundings
from inspector.engine.recurrent.verification import NO_GRADIENT
from inspector.engine.registries import PROBES
from inspector.engine.scans.in_loops import of_recurrence, without_scans
from inspector.engine.scans.search import scans_of
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.own_axes import BACKWARD
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text
from inspector.records import CARRIED, LAYER_DOMAIN, STATE, Labels, Log, place_name

FULL = (
    "The model makes more operations than are recorded, so loops after the first {:,} are missed; a shorter sequence "
    "shows them."
)
MANY = 20_000
"""Number of operations in which the search for recurrences takes a tenth of a second or more: it is then reported."""
BUFFER = (
    "The model writes into a tensor and reads it in other ways than by the places it wrote to, all within a loop, so "
    "what it carries from step to step is not followed; states in variables or in a list are."
)
FAULT = "{} is not shown in {}: a fault of this program was met ({})."
MOST_RUNS = 32
"""Runs of one loop that are shown, each as a recurrence of its own. Counter-example: of a stack of more than 32 layers
that is written with functions and weights by index, the first 32 layers are shown."""
MANY_RUNS = "{} runs {} times; its first {} runs are shown."
TRANSFORMED = (
    "{}(), line {}, runs inside a transform of torch.func (vmap, grad, jvp), where tensors cannot be stored, so no "
    "loop in it is shown; call it without the transform, on the whole batch or on one sequence."
)
UNFOLLOWED = (
    "Which steps of the inputs the loops read could not be found ({}); axes are chosen by their numbers of steps."
)


@PROBES.register("handwritten")
class Handwritten:
    """Records the operations of a forward pass and finds the recurrences in them."""

    summary = "Hand-written recurrences: Python loops over any operations, and stacks of equal layers"

    def __init__(self) -> None:
        self._recorder: OperationRecorder | None = None
        self._stack: ModuleStack | None = None
        self._found: list[tuple[ReplayRecurrence | GraphRecurrence, Wanted]] = []
        self._refused: dict[str, str] = {}
        self._looked = False
        self._followed: list[LoopRead] = []
        self._fused: list[bool] = []
        self._names: dict[int, str] = {}
        self._made: Origins | None = None
        self._parameters: dict[int, str] = {}
        self._claimed: dict[int, str] = {}
        self._runs: Counter[tuple[CodeType, str, int]] = Counter()

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Push the mode; nothing where no Python runs that could be recorded."""
        if is_opaque(model):  # one of torch's fused modules: no line of the user's runs
            return
        if any(isinstance(module, FUSED) for module in model.modules()):
            self._stack = ModuleStack(model, self._entered, self._left)
        self._names = {**{id(module): name for name, module in model.named_modules()}, **trace.places}
        self._claimed = {} if trace.places else {  # with places, modules of families are written out as loops
            id(module): name for name, module in model.named_modules()
            if not is_opaque(module) and (sequence_family(module) or step_family(module)) is not None
        }  # fmt: skip
        self._parameters = {id(value): name for name, value in model.named_parameters()}
        self._recorder = OperationRecorder(trace.editor)
        trace.hooks, trace.node_hooks = self._recorder.hooks, self._recorder.node_hooks
        self._recorder.begin(following=trace.may_have_gradients)
        trace.after_forward.append(lambda: self._look(trace, emit))

    def detach(self) -> None:
        """Remove the mode and the hooks."""
        if self._recorder is not None:
            self._recorder.end()
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def _entered(self, module: nn.Module) -> None:
        assert self._recorder is not None
        self._fused.append(runs_fused(module))
        if self._fused[-1]:
            self._recorder.on(False)

    def _left(self, _module: nn.Module, *_rest: object) -> None:
        assert self._recorder is not None and self._stack is not None
        depth = len(self._stack.modules)
        if any(self._fused[depth:]) and not any(self._fused[:depth]):
            self._recorder.on(True)
        del self._fused[depth:]

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put the recurrences into the trace, with their gradients."""
        recorder = self._recorder
        if recorder is None:
            return
        if not self._looked:
            self._look(trace, emit)
        for recurrence, wanted in self._found:
            try:
                wanted.fill(recurrence)
            except Unsupported as problem:
                emit.refuse(f"{recurrence.place}:gradient", str(problem))
            if recurrence.unfollowed is not None:
                emit.sink.write(Log(NO_GRADIENT.format(recurrence.place), "warning", "engine"))
            refuse_hooked(recurrence, wanted, recorder.hooks, recorder.node_hooks, emit)
            trace.recurrences.append(recurrence)
        for place, reason in self._refused.items():
            emit.refuse(f"{place}:h", reason)
        if recorder.full:
            emit.refuse("model:h", FULL.format(len(recorder)))
        if recorder.transformed is not None:
            name, line = recorder.transformed
            emit.refuse("model:h", TRANSFORMED.format(name.rpartition("<locals>.")[2], line))
        if recorder.broken:
            emit.refuse("model:h", f"Recording the model's operations failed ({recorder.broken}).")
        recorder.forget()
        self._found.clear()
        self._followed.clear()
        self._made = None

    def _look(self, trace: Trace, emit: Emitter) -> None:
        """Find the recurrences after the forward pass and before the backward one: gradients can still be requested."""
        assert self._recorder is not None
        self._recorder.listening, self._looked = False, True
        try:
            with unwatched():
                self._search(trace, emit)
        except CancelledError:
            raise
        except Exception as fault:  # noqa: BLE001 - reported instead of ending the run
            self._refused["model"] = f"Looking for hand-written recurrences failed ({error_text(fault)})."

    def _search(self, trace: Trace, emit: Emitter) -> None:
        assert self._recorder is not None
        if len(self._recorder) > MANY:
            emit.progress(0.0, 0.0, f"looking for recurrences in {len(self._recorder):,} operations")
        written = without_copies(self._recorder.table())
        scans = scans_of(written, trace, emit, self._names)
        find_written(written, trace, emit, self._names)
        table, lost = resolved(written)
        table = table if trace.editing else with_lists(table)
        self._made = Origins(table, trace, self._recorder.left)
        if trace.editing:
            recorded = trace.findings.of(RecordedLoops)
            recorded.operations, recorded.owners = table.ops(), table.owners
        fixed = frozenset(map(id, trace.subject.model.buffers()))
        search = find_loops(table, fixed, written_out(table, trace.places) if trace.places else ())
        explained = np.zeros(len(table), dtype=bool)
        loop = next(search, None)
        while loop is not None:
            emit.check()
            changes = table.changes
            place, look = partial(self._place, ROOT, trace), partial(self._useful, loop, trace, emit)
            useful = scans.covers(loop) or self._contained(loop, place, look)
            if useful:
                explained[list(chain.from_iterable(loop.iterations.numbers))] = True
            else:
                table.undo(changes)
            try:
                loop = search.send(useful)
            except StopIteration:
                loop = None
        if lost and not self._found:
            self._refused.setdefault("model", BUFFER)
        self._follow(table, written.calls, trace, emit)
        self._list_unshown(table, explained, trace, emit)

    def _list_unshown(self, table: Table, explained: npt.NDArray[np.bool_], trace: Trace, emit: Emitter) -> None:
        """Say of every other loop that carries something that it is not shown, and why."""
        for one in without_scans(table, unshown(table, explained), trace, emit, self._names):
            owners = {self._names.get(id(table.op(n).owner), "") for n in one.calls[:256]}
            self._refused[self._place(within(owners - {""}) or ROOT, trace)] = one.sentence

    def _follow(self, table: Table, written: Sequence[Call], trace: Trace, emit: Emitter) -> None:
        """What the loops and fused modules read of the inputs: where it cannot be followed, as many steps decide."""
        try:
            record_reads(self._followed, table, written, trace, self._modules())
        except CancelledError:
            raise
        except Exception as fault:  # noqa: BLE001 - reported; the recurrences themselves are not affected
            emit.sink.write(Log(UNFOLLOWED.format(error_text(fault)), "warning", "engine"))

    def _contained(self, loop: Loop, place: Callable[[], str], look: Callable[[], bool]) -> bool:
        """What `look` returns; a fault in it is reported at the place and does not end the search."""
        try:
            return look()
        except CancelledError:
            raise
        except Exception as fault:  # noqa: BLE001 - reported; the other loops and states are still found
            where = place()
            self._refused[where] = FAULT.format(where_of(loop), where, error_text(fault))
            return False

    def _useful(self, loop: Loop, trace: Trace, emit: Emitter) -> bool:
        if not trace.places:
            join_ends(loop, {one.steps for one in trace.batch.named.values() if one.axis})
        return self._open(loop, trace, emit) or self._one_by_one(loop, trace)

    def _open(self, loop: Loop, trace: Trace, emit: Emitter) -> bool:
        flow = analyse(loop)
        flow.tick = emit.check
        useful = False
        for state in states(flow):
            where = partial(self._place_of, flow, state, trace)
            useful |= self._contained(loop, where, partial(self._open_state, flow, state, trace, emit))
        return useful

    def _place_of(self, flow: Flow, state: Sequence[Slot], trace: Trace) -> str:
        return self._place(self._of_step(flow, state, trace), trace)

    def _of_step(self, flow: Flow, state: Sequence[Slot], trace: Trace) -> str:
        return place_of_sequence(place_of_step(flow, state, self._modules()), flow.loop.frame, trace.places)

    def _open_state(self, flow: Flow, state: Sequence[Slot], trace: Trace, emit: Emitter) -> bool:
        """Whether a group of slots is a recurrence: shown, refused with its reason, or shown by another probe."""
        loop = flow.loop
        place = self._of_step(flow, state, trace)
        assert self._made is not None
        cells = cells_within(flow, state, self._parameters)
        theirs, within = of_a_family(flow, state, self._claimed)
        if is_sequence(flow, state, leading_to(flow, state, 1)):
            return False
        loop.steps |= steps_of(flow, state)
        if "" in cells or of_a_cell(flow, state) or theirs:  # these have probes of their own
            self._followed.append(LoopRead(FollowedLoop(flow, state), names=cells_read(flow, state, self._owned())))
            return True
        if loop.depth and not (is_regular(loop) and may_be_a_stack(state, trace.batch)):
            return False
        if self._ran_too_often(loop, place):
            return True
        place = self._place(place, trace)
        state = corrected(flow, state, trace.states.get(place, ()))
        trace.cells_within |= cells | within  # also where it is refused: alone they are not what the step computes
        trace.calls_within |= fused_within(flow, state)
        trained = {**self._parameters, **weights_ahead(flow, state, self._parameters, inputs_of(trace))}
        try:
            recurrence, cut = recurrence_of(flow, state, trace.batch, place, self._made, trained)
        except Unsupported as reason:
            what = f"stack of {len(loop.iterations)} layers" if loop.depth else "recurrence"
            self._refused[place] = f"The {what} in {place} is not shown: {reason}."
            return True
        of_recurrence(flow, state, recurrence, trace)
        note_surroundings(recurrence, flow, state, self._parameters, trained, gradients=trace.may_have_gradients)
        trace.keep_graph |= isinstance(recurrence, GraphRecurrence)
        ask_weights(flow, recurrence, trace, trained)  # first: gradients as the model ran are of these weights
        self._found.append((recurrence, self._wanted(flow, state, recurrence, trace, trained, cut=cut)))
        self._keep(flow, state, recurrence, trace, emit)
        return True

    def _ran_too_often(self, loop: Loop, place: str) -> bool:
        """Count a run of a loop; whether it is one too many to be shown, which is reported."""
        run = loop.frame.f_code, place, loop.level
        self._runs[run] += 1
        many = self._runs[run] > MOST_RUNS
        if many:
            self._refused[f"{place}#{MOST_RUNS + 1}"] = MANY_RUNS.format(where_of(loop), self._runs[run], MOST_RUNS)
        return many

    def _keep(
        self,
        flow: Flow,
        state: Sequence[Slot],
        recurrence: ReplayRecurrence | GraphRecurrence,
        trace: Trace,
        emit: Emitter,
    ) -> None:
        """What else belongs to a recurrence: its axis, the names of its variables, and its loop for edits."""
        place = recurrence.place
        if flow.loop.depth:
            recurrence.domain, recurrence.names = LAYER_DOMAIN, layer_names(flow, state, self._modules())
        else:
            layer = is_written_out(flow.loop.frame, trace.places)
            self._followed.append(LoopRead(FollowedLoop(flow, state, written_out=layer), recurrence))
        if place.endswith(BACKWARD) and trace.places:  # a layer written out: it runs over padding, too
            recurrence.reverse, recurrence.lengths = True, torch.full_like(recurrence.lengths, recurrence.steps)
        named = place_name(place)
        emit.sink.write(Labels(CARRIED + named, tuple(slot.written for slot in flow.slots), emit.frame))
        emit.sink.write(Labels(STATE + named, tuple(slot.written for slot in state), emit.frame))
        size = int(trace.batch.lengths.numel())
        if trace.editing:
            trace.findings.of(RecordedLoops).loops.append(RecordedLoop(place, flow, state, size))

    def _wanted(
        self,
        flow: Flow,
        state: list[Slot],
        recurrence: ReplayRecurrence | GraphRecurrence,
        trace: Trace,
        trained: Mapping[int, str],
        *,
        cut: bool,
    ) -> Wanted:
        """Request the gradients at the states, and at values inside the steps that something else reads."""
        if not trace.may_have_gradients:
            return Wanted(flow, state, cut)
        assert self._made is not None
        kept = kept_tensors(trace.subject.model, trace.returned)
        flow, state = as_made(flow, state)
        graph = as_it_ran(flow, state, recurrence, self._made, trained, kept, cut=cut)
        wanted = Wanted(flow, state, cut, graph.stops)
        wanted.read = graph.read
        unchanged = UnchangedStates(flow, state, graph.inside)
        unchanged.ask(trace)
        wanted.unchanged, wanted.dynamics = unchanged, True
        if graph.recurrence is not None:
            recurrence.ran, graph.recurrence.weights = graph.recurrence, recurrence.weights
            inner = {slot.index for slot in graph.slots[len(state) :]}
            wanted.as_ran = Wanted(graph.flow, graph.slots, False, graph.stops, inner)
            wanted.as_ran.unchanged = unchanged
            wanted.as_ran.ask(trace)
        wanted.ask(trace)
        return wanted

    def _modules(self) -> dict[int, str]:
        """Ids of modules and of parameters → the module's name."""
        return {**{number: name.rpartition(".")[0] for number, name in self._parameters.items()}, **self._names}

    def _owned(self) -> dict[int, str]:
        """Ids of the modules of known families, and of the parameters of every module → the module's name."""
        return {**{number: name.rpartition(".")[0] for number, name in self._parameters.items()}, **self._claimed}

    def _one_by_one(self, loop: Loop, trace: Trace) -> bool:
        """True for a loop over the sequences of the batch, each with a loop over its steps inside: it is reported."""
        size = int(trace.batch.lengths.numel())
        if size == 1 or loop.depth or len(loop.iterations) != size:
            return False
        found = [(flow, state) for flow in map(analyse, loops_inside(loop)) for state in states(flow)]
        for flow, state in found:
            place = place_of_step(flow, state, self._modules())
            reason = f"the model goes through the batch's {size} sequences one by one; {ONE_SHOWS}"
            self._refused[place] = f"The recurrence in {place} is not shown: {reason}."
        return bool(found)

    def _place(self, place: str, trace: Trace) -> str:
        taken = [*(r.place for r, _ in self._found), *(r.place for r in trace.recurrences), *self._refused]
        count = sum(name == place or name.startswith(f"{place}#") for name in taken)
        return place if not count else f"{place}#{count + 1}"
