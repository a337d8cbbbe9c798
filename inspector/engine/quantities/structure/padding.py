"""Do a sequence's outputs depend on how much padding follows it, or stands before it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.structure.calls import Answer, Calls, sequences_of
from inspector.engine.analyses.structure.changes import alone
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.analyses.structure.modules import Moved
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch, NamedInput
from inspector.engine.model.call import takes_batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="change of an output with more padding",
    formula="max_f |y'_t[f] − y_t[f]| / max |y| at the real steps, the sequence padded on the right",
    source="finite differences; pytorch/pytorch#3662",
)  # fmt: skip


@QUANTITIES.register("structure/padding")
@per_run(
    summary="whether a sequence's outputs depend on the padding behind it", order=90, default=False,
    cost="some ten runs of the model", work=lambda run: run.call * 12,
)  # fmt: skip
def padding(trace: Trace, emit: Emitter) -> None:
    """Write (part, step) changes, one row for each amount of padding on the right.

    `structure/padding/told` is 1 where the model is told what is padding: by lengths or by a mask. Without that, a
    model cannot tell padding from input, and outputs that depend on later inputs depend on padding too.
    """
    emit.scalar("structure/padding/told", float(_told(trace)))
    try:
        calls, one = Calls(trace), alone(trace.batch)
        first, rows, amounts = calls.settled(one), list[Tensor](), sorted({1, max(1, one.length // 2), one.length})
        for amount in amounts:
            emit.check()
            longer = padded(one, amount, _values(trace))
            rows.append(_cut(calls, longer, first, one.length))
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/padding", str(reason))
        return
    table = torch.stack(rows).numpy()
    labels = {"part": tuple(f"{amount} more" for amount in amounts)}
    about = replace(ABOUT, labels=labels)
    dims = ("part", "step") if first.steps else ("part", "value")
    write(Found("padding", about, dims, np.asarray(table), 8 * first.rounding, _nowhere()), emit)


def _nowhere() -> Moved:
    """Modules see sequences of two lengths: their outputs are not compared one by one."""
    return Moved((), (), "")


def _told(trace: Trace) -> bool:
    """Whether something that is given to the model says how long its sequences are."""
    if any(one.kind == "mask" and one.tensor is not None for one in trace.batch.named.values()):
        return True
    forward = trace.subject.forward
    return forward is not None and (not takes_batch(forward, trace.subject.name) or _reads_lengths(forward))


def _reads_lengths(forward: object) -> bool:
    """Whether a function of a batch mentions its lengths or its mask."""
    code = getattr(forward, "__code__", None)
    return code is not None and bool({"lengths", "mask"} & set(code.co_names))


def _values(trace: Trace) -> Mapping[str, float]:
    """What stands at the padding of each input that declares it; in a mask, whether True is what marks it."""
    named, declared = trace.batch.named, trace.subject.declared
    return {
        name: float(one.marks == "padding") if named[name].kind == "mask" else one.padding
        for name, one in declared.items()
        if name in named
    }


def padded(batch: Batch, amount: int, values: Mapping[str, float]) -> Batch:
    """The batch with so many more steps of padding on the right of every input along its steps: 0 where `values` has
    no other number for it."""
    along = set(sequences_of(batch))
    named = {
        name: _longer(one, amount, values.get(name, 0)) if name in along else one for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=batch.targets, title=batch.title)


def _longer(one: NamedInput, amount: int, value: float) -> NamedInput:
    assert one.tensor is not None
    shape = (one.tensor.shape[0], amount, *one.tensor.shape[2:])
    filled = torch.full(shape, value, dtype=one.tensor.dtype, device=one.tensor.device)
    return replace(one, tensor=torch.cat([one.tensor, filled], 1))


def _cut(calls: Calls, longer: Batch, first: Answer, length: int) -> Tensor:
    """(t,) changes at the real steps. A model that is told of lengths may return no more steps than there are."""
    output = calls.output(longer)
    try:
        found = calls.laid_out(output, longer)
    except Unsupported:
        found = first
    if found is first or found.steps != first.steps:
        short = replace_steps(longer, length)
        found = calls.laid_out(output, short)
    return first.change(Answer(found.values[:, : first.values.shape[1]], found.steps))[0]


def replace_steps(batch: Batch, length: int) -> Batch:
    """The batch cut to a number of steps: as the output of a model that packs its sequences lies."""
    first = batch.first
    assert first.tensor is not None
    named = {**batch.named, batch.primary: replace(first, tensor=first.tensor[:, :length])}
    return Batch.of(named, batch.primary, title=batch.title)
