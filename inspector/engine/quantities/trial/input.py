"""Does what is read count? The loss of sequences with their own input, and with that of others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.analyses.structure.calls import Calls
from inspector.engine.analyses.trial.data_pairs import batches_of
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.batch import Batch, selected
from inspector.engine.model.joining import shape_key
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

NAME = "model:trial/input"
MOST = 32
"""Sequences that are compared, each with another one of its shape."""
ABOUT = Describe(
    kind="trial", compare="separate", unit=LOSS_UNIT, title="loss with the own input and with that of others",
    formula="mean loss of y_n by the output on x_n; by the output on x_m, m another sequence; max |f(x_m) − f(x_n)| "
    "beside the largest output",
    source="Karpathy 2019, A recipe for training neural networks: an input-independent baseline",
    labels={"statistic": ("own", "others", "outputs")},
)  # fmt: skip


@QUANTITIES.register("trial/input")
@per_run(
    summary="whether the loss is lower with a sequence's own input than with that of another", order=92, default=False,
    needs=(LOSS,), cost=f"{2 * MOST} runs of the model", work=lambda run: run.call * 2 * MOST,
)  # fmt: skip
def own_input(trace: Trace, emit: Emitter) -> None:
    """Write (statistic, sequence), and the scalars `trial/input/rounding`, `…/zero_weights` and `…/trained`: 1 where
    weights were loaded. Nothing of a subject whose targets are its inputs, which cannot be exchanged apart."""
    if trace.batch.targets is None and (trace.subject.data is None or trace.subject.next_token):
        return
    calls, columns, rounding = Calls(trace), list[tuple[float, float, float]](), 1e-6
    try:
        pairs = list(_pairs(trace))
        if not pairs:
            raise Unsupported("There are no two sequences of one shape with targets: give several, or data.")
        for own, other in pairs:
            emit.check()
            first, lost = _asked(trace, calls, own)
            second, more = _asked(trace, calls, _exchanged(own, other))
            one, two = calls.laid_out(first, own), calls.laid_out(second, own)
            columns.append((lost, more, float(one.change(two).max())))
            rounding = one.rounding
    except Unsupported as reason:
        emit.refuse(NAME, str(reason))
        return
    values = np.array(columns).T
    emit.array(ABOUT.channel(NAME, ("statistic", "sequence"), values.shape, "float64"), values)
    emit.scalar("trial/input/rounding", rounding)
    emit.scalar("trial/input/zero_weights", float(_zero_weights(trace.subject.model)))
    emit.scalar("trial/input/trained", float(bool(trace.subject.checkpoint)))


def _pairs(trace: Trace) -> Iterator[tuple[Batch, Batch]]:
    """Sequences with targets, each with the next of its shape whose target is another one."""
    groups = dict[Hashable, list[Batch]]()
    found = 0
    for batch in batches_of(trace):
        targets = batch.targets
        for row in range(batch.size if isinstance(targets, Tensor) and len(targets) == batch.size else 0):
            one = selected(batch, [row], targets=targets[row : row + 1])
            if one.lengths.all():
                groups.setdefault(shape_key(one), []).append(one)
                found += 1
        if found >= MOST:
            break
    for group in groups.values():
        for n, one in enumerate(group[:MOST]):
            others = (*group[n + 1 :], *group[:n])
            another = next((two for two in others if not torch.equal(two.targets, one.targets)), None)
            if another is not None:
                yield one, another


def _exchanged(own: Batch, other: Batch) -> Batch:
    """What the other one reads, asked for the own targets."""
    return Batch.of(other.named, own.primary, targets=own.targets, title=own.title)


def _asked(trace: Trace, calls: Calls, batch: Batch) -> tuple[object, float]:
    """(output, mean loss). Raises Unsupported."""
    output = calls.output(batch)
    try:
        with torch.no_grad():
            loss = trace.subject.loss_of(output, trace.subject.placed(batch))
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, "The loss, called again,"))) from None
    if not isinstance(loss, Tensor) or not loss.numel():
        raise Unsupported("The subject has no loss of these sequences.")
    return output, float(loss.detach().double().nanmean())


def _zero_weights(model: nn.Module) -> int:
    return sum(one.dim() > 1 and one.numel() > 0 and not bool(one.any()) for one in model.parameters())
