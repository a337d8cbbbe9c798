"""Step axes of recurrences whose steps are not those of an input, and what each of their steps read.

A loop that runs backwards, skips steps, takes several at once or makes several iterations a step has iterations of its
own: it lies along an axis of iterations, whose labels say which steps of the input each iteration read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.reads import Reads
from inspector.engine.trace.step_axes import UNKNOWN
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import OWN_ITERATIONS, Axis, place_name

BACKWARD = ".reverse"


@dataclass(slots=True)
class RecordedReads:
    """What was recorded of the steps of the inputs that loops and modules read, by the name of the module.

    Attributes:
        loops: of a cell in a user's loop, one for each loop in order.
        fused: of a fused module, one for each call in order; None for a call of which it is not known.
    """

    loops: dict[str, list[Reads]] = field(default_factory=dict)
    fused: dict[str, list[Reads | None]] = field(default_factory=dict)
    across: list[str] = field(default_factory=list)
    """Fused modules that went along the sequences of the batch instead of along their steps."""


def assign_reads(trace: Trace) -> None:
    """Give every recurrence of a cell or of a fused module what its steps read, where that was recorded."""
    recorded = trace.findings.get(RecordedReads)
    if recorded is None:
        return
    for recurrence in trace.recurrences:
        if recurrence.reads is not None:
            continue
        name, _, number = recurrence.place.removesuffix(BACKWARD).partition("#")
        number = number or name.partition("#")[2]
        if name in recorded.loops:
            own = [reads for reads in recorded.loops[name] if len(reads) == recurrence.steps]
            at = int(number) - 1 if number.isdigit() else 0
            recurrence.reads = own[min(at, len(own) - 1)] if own else None
            continue
        module = name.rpartition(".l")[0] if not number else name
        calls = recorded.fused.get(module)
        if calls:
            chain = int(number.partition(".")[0]) if number else 1
            recurrence.reads = _of_chain(calls, recurrence.steps, chain)


def _of_chain(calls: Sequence[Reads | None], steps: int, chain: int) -> Reads | None:
    """The calls of a chain as one; each chain is taken to have as many steps. None where that does not work out."""
    left = list(calls)
    for _ in range(chain):
        own: list[Reads] = []
        while left and sum(map(len, own)) < steps:
            one = left.pop(0)
            if one is None:
                return None
            own.append(one)
    if sum(map(len, own)) != steps or len({one.input for one in own}) != 1:
        return None
    return Reads(own[0].input, np.concatenate([one.low for one in own]), np.concatenate([one.high for one in own]))


def give_own_axis(trace: Trace, recurrence: Recurrence, emit: Emitter) -> None:
    """Lay a recurrence along an axis of its own; those that read the same steps in the same order share it."""
    reads, place = recurrence.reads, place_name(recurrence.place)
    if reads is None:
        recurrence.domain = emit.step_domains[place] = UNKNOWN
        return
    own = trace.findings.of(OwnAxes)
    key = (recurrence.place, *reads.key()) if reads.nothing else reads.key()
    known = own.names.get(key)
    if known is None:
        outer = place.removesuffix(BACKWARD)
        known = own.names[key] = OWN_ITERATIONS + (outer if outer not in own.taken else place)
        own.taken.add(outer)
        emit.axis(Axis(name=known, title=known, length=len(reads), unit="iteration"))
        if not reads.nothing:
            emit.labels(known, reads.labels(trace.batch.named[reads.input].row_names(trace.look_at)))
    recurrence.domain = emit.step_domains[place] = known
    _real_steps(trace, recurrence, reads)


@dataclass(slots=True)
class OwnAxes:
    """The axes of iterations that were made, by what their steps read."""

    names: dict[tuple[object, ...], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)


def _real_steps(trace: Trace, recurrence: Recurrence, reads: Reads) -> None:
    """All steps are real: padding that is read first cannot be left out. Where it is read last, it is."""
    if recurrence.reverse or len(recurrence.lengths) == 0 or len(reads) != recurrence.steps:
        return
    steps = torch.full_like(recurrence.lengths, recurrence.steps)
    if not reads.nothing and bool((np.diff(reads.high) >= 0).all()):
        given = trace.batch.named[reads.input].lengths
        held = slice(recurrence.base, recurrence.base + len(steps))
        if len(given[held]) == len(steps):
            high = torch.from_numpy(reads.high)
            steps = (high[:, None] < given[held][None].cpu()).sum(0).clamp(min=1).to(steps.dtype)
    recurrence.lengths = steps
