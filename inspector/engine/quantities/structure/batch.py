"""Does a sequence's output depend on the other sequences of its batch?"""

from __future__ import annotations

import numpy as np

from inspector.engine.analyses.structure.calls import Calls
from inspector.engine.analyses.structure.changes import Replacing, alone
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.analyses.structure.modules import Moved, moved
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch, selected
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

ABOUT = Describe(
    kind="structure", compare="separate", scale="log",
    title="change of an output when the other sequences are replaced",
    formula="max_f |y'_t[f] − y_t[f]| / max |y| of one sequence, every input of the others replaced",
    source="finite differences",
)  # fmt: skip
SIZES = (3, 5, 7)
"""Sequences of the batch: the first number that is no other size of the run, so that no axis is mistaken."""


@QUANTITIES.register("structure/batch")
@per_run(
    summary="whether a sequence's outputs depend on the others of its batch", order=90, default=False,
    cost="some ten runs of the model", work=lambda run: run.call * 30,
)  # fmt: skip
def batch(trace: Trace, emit: Emitter) -> None:
    """Write (step,) changes of the first and the last sequence's outputs, the larger of both.

    Both ends are looked at: where batch and time were exchanged, a sequence depends on those before it only.
    """
    try:
        calls, one = Calls(trace), alone(trace.batch)
        given = selected(one, [0] * _size(one))
        first = calls.settled(given)
        worst, values, seen = -1.0, np.zeros(0), None
        for kept in (0, given.size - 1):
            emit.check()
            changed = _others(trace, given, kept)
            change = first.change(calls.answer(changed))[kept]
            if float(change.max()) > worst:
                worst, values = float(change.max()), change.numpy()
                seen = _where(calls, given, changed, kept) if worst > first.rounding else None
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/batch", str(reason))
        return
    dims = ("step",) if first.steps else ("value",)
    write(Found("batch", ABOUT, dims, values, first.rounding, seen), emit)


def _size(one: Batch) -> int:
    sizes = set(one.inputs.shape)
    return next((size for size in SIZES if size not in sizes), SIZES[-1])


def _others(trace: Trace, given: Batch, kept: int) -> Batch:
    places = [(row, step) for row in range(given.size) if row != kept for step in range(given.steps)]
    return Replacing(trace.subject, given).at(given, places)


def _where(calls: Calls, given: Batch, changed: Batch, kept: int) -> Moved:
    return moved(calls, given, changed, lambda change: change[kept])
