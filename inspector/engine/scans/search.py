"""All scans of a recorded run: looked for before loops are, since a scan in log₂ T rounds is a loop of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from inspector.engine.errors import CancelledError
from inspector.engine.recurrent.traced.loops.loop import Loop
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to, results_of
from inspector.engine.recurrent.traced.record.places import place_of
from inspector.engine.scans import decayed
from inspector.engine.scans.chunked import chunked_products
from inspector.engine.scans.convolution import Convolution, convolutions
from inspector.engine.scans.convolved import gradient_of
from inspector.engine.scans.convolved import map_of as kernel_map
from inspector.engine.scans.convolved import steps_of as rebuilt
from inspector.engine.scans.decayed import Decayed, decayed_products
from inspector.engine.scans.diagonal import Diagonal, diagonals
from inspector.engine.scans.direction import TURNS, runs_backwards
from inspector.engine.scans.memories import is_memory
from inspector.engine.scans.mixing import Stretch, calls_named, stretches
from inspector.engine.scans.padded import as_read
from inspector.engine.scans.readout import reading_after
from inspector.engine.scans.recurrences import MOST, MOST_NUMBERS, Steps, arriving, first_state, recurrence_of
from inspector.engine.scans.shown import stands_for
from inspector.engine.scans.unrecognised import is_listed, sentence
from inspector.engine.scans.values import Flow
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.own_axes import BACKWARD
from inspector.engine.trace.trace import Attention, Recurrence, Trace
from inspector.engine.wording import error_text
from inspector.records import Log

TOO_LARGE = "The scan in {} is not shown: its states are {:,} numbers for one sequence; the limit is {:,}."


@dataclass(frozen=True, slots=True)
class Scan:
    """A recurrence that was found, and the tensors that are its parts."""

    place: str
    module: str
    made: int
    recurrence: Recurrence | None
    attention: Attention | None
    parts: Mapping[str, Tensor]
    """Factors by their names, (t, k) each."""
    kernel: Tensor | None = None
    """(d, l) of a long convolution."""

    def backwards(self) -> Scan:
        """The same, running from the last step to the first: its steps are numbered as those of the sequence."""
        place = f"{self.place}{BACKWARD}"
        if self.recurrence is not None:
            self.recurrence.place, self.recurrence.reverse = place, True
            self.recurrence.lengths = torch.full_like(self.recurrence.lengths, self.recurrence.steps)  # padding first
        if self.attention is not None and self.attention.weights is not None and self.attention.mask is not None:
            self.attention.place, self.attention.causal = place, False
            self.attention.weights = self.attention.weights.flip(-2, -1)
            self.attention.mask = self.attention.mask.flip(-2, -1)
        parts = {name: values.flip(0) for name, values in self.parts.items()}
        return replace(self, place=place, parts=parts)

    @property
    def passed(self) -> bool:
        """Whether its states, where it has some, were reproduced."""
        check = None if self.recurrence is None else self.recurrence.check
        return check is None or check.passed

    @property
    def steps(self) -> int:
        """Of its sequence."""
        if self.recurrence is not None:
            return self.recurrence.steps
        return 0 if self.kernel is None else self.kernel.shape[1]


@dataclass(slots=True)
class Scans:
    """What the search of a run found, in the order of the run."""

    found: list[Scan] = field(default_factory=list)
    unshown: list[str] = field(default_factory=list)
    unmapped: dict[str, str] = field(default_factory=dict)
    """Place of a recurrence → why the map that it may be equal to is not shown."""
    computed: set[int] = field(default_factory=set)
    """Ids of the tensors that the operations of the scans made."""

    @property
    def places(self) -> set[str]:
        """The modules whose scans have a map."""
        return {one.place for one in self.found if one.attention is not None}

    def covers(self, loop: Loop) -> bool:
        """Whether a loop is a part of a scan: most of what its first iteration made. A loop over layers never is."""
        made = [] if loop.depth else [id(out) for _, op in loop.iterations[0] for out in op.outputs]
        return bool(made) and 2 * sum(number in self.computed for number in made) > len(made)


def scans_of(table: Table, trace: Trace, emit: Emitter, names: Mapping[int, str]) -> Scans:
    """The scans of a run. Their recurrences are in the trace when this returns, and their gradients are asked for.

    A fault in the search is reported, and those that were found before it are there. `names`: id of a module → its
    name.
    """
    scans = trace.findings.of(Scans)
    try:
        _search(table, trace, emit, names, scans)
    except CancelledError:
        raise
    except Exception as fault:  # noqa: BLE001 - reported; loops are still looked for
        emit.sink.write(Log(f"Looking for parallel scans failed ({error_text(fault)}).", "warning", "engine"))
    return scans


def _search(table: Table, trace: Trace, emit: Emitter, names: Mapping[int, str], scans: Scans) -> None:
    own = stretches(table, lengths_of(trace))
    flow = Flow(table)
    chunked = chunked_products(flow, trace.batch.steps, int(trace.batch.lengths.numel()), trace.look_at)
    for product in (*decayed_products(flow, lengths_of(trace)), *chunked):
        emit.check()
        place, module = place_of(table, product.made, names)
        _show_decayed(product, unique(place, trace, emit), module, trace, emit, scans)
        _turn(flow, scans, len(scans.found) - 1, trace)
    for stretch in own:
        emit.check()
        if stretch.kinds != {"joined"}:
            _look(flow, stretch, trace, emit, names, scans)


def lengths_of(trace: Trace) -> set[int]:
    """The numbers of steps that a scan of this run may have: those of the inputs, and the power of two above each."""
    own = {trace.batch.steps} | {one.steps for one in trace.batch.named.values()}
    return own | {1 << (length - 1).bit_length() for length in own if length > 1}


def _look(flow: Flow, stretch: Stretch, trace: Trace, emit: Emitter, names: Mapping[int, str], scans: Scans) -> None:
    samples = int(trace.batch.lengths.numel())
    before = len(scans.found)
    for found in diagonals(flow, stretch, samples, trace.look_at):
        if found.unit and not is_memory(flow, found):
            continue  # a running sum of values: a count, a mean so far, the normaliser of linear attention
        place, module = place_of(flow.table, found.h.made, names)
        _show(flow, found, unique(place, trace, emit), module, trace, emit, scans)
    for one in convolutions(flow, stretch, samples, trace.look_at):
        place, module = place_of(flow.table, one.y.made, names)
        _show_convolution(one, unique(place, trace, emit), module, trace, emit, scans)
    _turn(flow, scans, before, trace)
    if len(scans.found) > before:
        last = max(one.made for one in scans.found[before:])
        numbers = range(stretch.calls[0], max(last, stretch.calls[-1]) + 1)
        scans.computed |= {id(out) for n in numbers for out in results_of(flow.table.calls[n][3])}
    elif is_listed(flow.table, stretch):
        scans.unshown.append(sentence(flow.table, stretch))


def _turn(flow: Flow, scans: Scans, first: int, trace: Trace) -> None:
    """Number the steps of those that run backwards, of the scans from a number on, as those of the sequence."""
    for n in range(first, len(scans.found)) if calls_named(flow.table, TURNS.__contains__) else ():
        call = flow.table.calls[scans.found[n].made]
        made = (*results_of(call[3]), *given_to(call))[0]
        if runs_backwards(flow, made, trace.batch.steps):
            scans.found[n] = scans.found[n].backwards()


def _show(flow: Flow, found: Diagonal, place: str, module: str, trace: Trace, emit: Emitter, scans: Scans) -> None:
    units = found.h.tensor.numel() // max(1, int(trace.batch.lengths.numel()))
    if units > MOST:
        emit.refuse(f"{place}:h", TOO_LARGE.format(place, units, MOST))
        return
    found = as_read(flow, found, trace.batch.steps)
    sample = trace.look_at if found.h.tensor.numel() > MOST_NUMBERS else None
    steps = steps_of(found, trace.batch.steps, sample)
    recurrence = recurrence_of(steps, place, module, trace)
    count = len(steps.b)
    trace.want_gradient(found.h.tensor, arriving(recurrence, partial(_rows, found, count, sample)))
    trace.recurrences.append(recurrence)
    attention: Attention | None = None
    parts: Mapping[str, Tensor] = {}
    if recurrence.check is not None and recurrence.check.passed:
        attention, parts = stands_for(flow, found, steps, recurrence, trace.look_at, reading_after(flow, found.h))
    scans.found.append(Scan(place, module, found.h.made, recurrence, attention, parts))


def _show_convolution(found: Convolution, place: str, module: str, trace: Trace, emit: Emitter, scans: Scans) -> None:
    sample, recurrence = trace.look_at, None
    if found.modes is not None:
        units = found.u.tensor.numel() * found.modes.decay.shape[1]
        some = sample if units > MOST_NUMBERS else None
        if units // max(1, int(trace.batch.lengths.numel())) > MOST:
            emit.refuse(f"{place}:h", TOO_LARGE.format(place, units, MOST))
        else:
            steps, check = rebuilt(found, found.modes, some)
            recurrence = recurrence_of(steps, place, module, trace)
            recurrence.check = check
            trace.want_gradient(found.y.tensor, arriving(recurrence, gradient_of(found, found.modes, some)))
            trace.recurrences.append(recurrence)
    attention = kernel_map(found, place, module, sample)
    scans.found.append(Scan(place, module, found.y.made, recurrence, attention, {}, found.kernel))


def _show_decayed(found: Decayed, place: str, module: str, trace: Trace, emit: Emitter, scans: Scans) -> None:
    sample, numbers = trace.look_at, found.key.numel() * found.value.shape[-1]
    attention, recurrence = decayed.map_of(found, place, module, sample), None
    some = sample if numbers > MOST_NUMBERS else None
    if numbers // len(found.key) > MOST:
        emit.refuse(f"{place}:h", TOO_LARGE.format(place, numbers, MOST))
    else:
        steps = decayed.steps_of(found, some)
        recurrence = recurrence_of(steps, place, module, trace)
        recurrence.check = decayed.check_of(found, steps)
        trace.want_gradient(found.y.tensor, arriving(recurrence, partial(decayed.gradient_of, found, some)))
        trace.recurrences.append(recurrence)
    parts = {"query": found.query, "key": found.key, "value": found.value}
    own = {name: one[sample].movedim(1, 0).flatten(1) for name, one in parts.items()}
    scans.found.append(Scan(place, module, found.made, recurrence, attention, own))


def steps_of(found: Diagonal, real: int, sample: int | None) -> Steps:
    """The rows of a, b and h; steps after the last real one, which only pad, are left out.

    Where h has one entry more than the sequence has steps, the first is the initial state.
    """
    h, b = (found.layout.rows(one.numbers(), sample) for one in (found.h, found.b))
    h = h.to(torch.promote_types(h.dtype, b.dtype))
    a = found.decay(h, b) if sample is None else found.decay(h, b)[:, :1]
    if sample is not None and found.a is not None:
        a = found.layout.rows(found.a.numbers(), sample)[: len(a)]
    base = 0 if sample is None else sample
    if len(h) == real + 1:
        return Steps(h, b[1:].to(h.dtype), a if len(a) == 1 else a[1:], base)
    count = min(len(h), real) if len(h) > real else len(h)
    h, b, a = h[:count], b[:count].to(h.dtype), a if len(a) == 1 else a[:count]
    return Steps(torch.cat([first_state(h, b, a), h]), b, a, base)


def _rows(found: Diagonal, count: int, sample: int | None, gradient: Tensor) -> Tensor:
    rows = found.layout.rows(gradient, sample)
    return rows[1:] if len(rows) == count + 1 else rows[:count]


def unique(place: str, trace: Trace, emit: Emitter) -> str:
    """A place that no other recurrence has: "mixer#2" after "mixer"."""
    refused = [name for name, _ in emit.refused if ":latent/" not in name]  # noise beside it is no recurrence
    taken = [one.place for one in trace.recurrences] + [name.partition(":")[0] for name in refused]
    count = sum(name == place or name.startswith(f"{place}#") for name in taken)
    return place if not count else f"{place}#{count + 1}"
