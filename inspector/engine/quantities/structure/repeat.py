"""Does a call change what the next one gives? The model is called on one input, on another and on the first again, and
with other random numbers."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor

from inspector.engine.analyses.structure.calls import NOTHING_FINITE, Answer, Calls
from inspector.engine.analyses.structure.changes import MOST_POSITIONS, Replacing, alone
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="change of an output from one call to the next",
    formula="max_f |y'_t[f] − y_t[f]| / max |y|, the same input given again after another one",
    source="finite differences",
    labels={"part": ("the next call, same random numbers", "other random numbers")},
)  # fmt: skip


@QUANTITIES.register("structure/repeat")
@per_run(
    summary="whether the model carries something from call to call, and whether it is random", order=90, default=False,
    cost="five runs of the model", work=lambda run: run.call * 5,
)  # fmt: skip
def repeat(trace: Trace, emit: Emitter) -> None:
    """Write (part, step) changes: of a later call with the same random state (a state that is not reset), and of a
    first call with another one (dropout, sampling).

    Another input is given between the two: a state that forgets is, after the same input, the same that the first call
    found when the run had ended. `structure/repeat/nan`: the share of outputs of the first call that are NaN."""
    try:
        calls, one = Calls(trace), alone(trace.batch)
        with calls.ready():
            first = calls.laid_out(calls.once(one), one)
            emit.scalar("structure/repeat/nan", float(first.values.isnan().double().mean()))
            if not bool(first.values.isfinite().any()):
                raise Unsupported(NOTHING_FINITE)
            with suppress(Unsupported):  # it cannot be called on another input
                calls.once(_another(trace, one))
            torch.manual_seed(trace.seed)
            again = calls.laid_out(calls.once(one), one)
        with calls.ready(trace.seed + 1):
            other = calls.laid_out(calls.once(one), one)
        values = torch.stack([_change(first, again), _change(first, other)])
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/repeat", str(reason))
        return
    dims = ("part", "step") if first.steps else ("part", "value")
    write(Found("repeat", ABOUT, dims, values.numpy(), first.rounding), emit)


def _another(trace: Trace, one: Batch) -> Batch:
    """The sequence with its last steps replaced."""
    steps = range(one.length)[-MOST_POSITIONS:]
    return Replacing(trace.subject, one).at(one, [(0, step) for step in steps])


def _change(first: Answer, other: Answer) -> Tensor:
    if first.values.shape != other.values.shape:
        raise Unsupported(
            f"Called again on the same input, the model returns {tuple(other.values.shape)} instead of "
            f"{tuple(first.values.shape)}."
        )
    return first.change(other)[0]
