"""Inputs and targets of many sequences, as ids: of the run's batch, or of the subject's own data where it has some."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from torch import Tensor

from inspector.engine.analyses.trial.lagged_information import Ids, Pairs
from inspector.engine.errors import InputError, Unsupported, model_error
from inspector.engine.model.batch import Batch
from inspector.engine.model.named_batches import of_example
from inspector.engine.trace.trace import Trace
from inspector.records import counted

MOST_SEQUENCES, MOST_TARGETS = 512, 20_000
CLASSES = "The targets are not ids (one for each step, or one for a sequence), so no dependence can be counted."


def pairs_of(trace: Trace) -> tuple[Pairs, str]:
    """(inputs and targets, what they were read from). Raises Unsupported where they are not ids."""
    batch = trace.batch
    if batch.first.kind != "tokens" or batch.inputs.dim() != 2:
        raise Unsupported("The inputs are not ids, so how often they occur together with targets cannot be counted.")
    if trace.answer is not None:
        raise Unsupported("The output has a step axis of its own, so no input lies a lag before a target.")
    rows, last = list[tuple[Ids, Ids]](), False
    count = 0
    for one in batches_of(trace):
        for inputs, targets, at_end in rows_of(one, next_token=trace.subject.next_token):
            rows.append((inputs, targets))
            count, last = count + int((targets >= 0).sum()), last or at_end
        if len(rows) >= MOST_SEQUENCES or count >= MOST_TARGETS:
            break
    source = "of the subject's data" if trace.subject.data is not None else "of this run"
    return Pairs.of(rows, from_end=last), f"{count:,} targets in {counted(len(rows), 'sequence')} {source}"


def batches_of(trace: Trace) -> Iterator[Batch]:
    """The subject's own data, one sequence after the other; the batch of the run where it has none. Raises
    Unsupported."""
    data, name = trace.subject.data, trace.subject.name
    if data is None:
        yield trace.batch
        return
    try:
        given = data() if callable(data) else data
        for one in islice(given.values() if hasattr(given, "values") else given, MOST_SEQUENCES):
            yield of_example(trace.subject, one, "")
    except InputError as problem:
        raise Unsupported(str(problem)) from None
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, f"The data of {name}"))) from None


def rows_of(batch: Batch, *, next_token: bool) -> Iterator[tuple[Ids, Ids, bool]]:
    """(inputs (t,), targets (t,), whether the only target is at the end) of each sequence. Raises Unsupported."""
    targets = batch.targets
    for n, length in enumerate(batch.lengths.tolist()):
        inputs: Ids = batch.inputs[n, :length].cpu().numpy().astype(np.int64)
        wanted: Ids = np.full(length, -1, dtype=np.int64)
        if next_token:
            wanted[:-1] = inputs[1:]
            yield inputs, wanted, False
            continue
        if not isinstance(targets, Tensor) or targets.is_floating_point() or len(targets) != batch.size:
            raise Unsupported(CLASSES)
        own = targets[n].cpu().numpy().astype(np.int64)
        if own.size == 1 and length > 1:
            wanted[-1] = own.reshape(-1)[0]
            yield inputs, wanted, True
        elif own.ndim == 1 and len(own) >= length:
            wanted[:] = own[:length]
            yield inputs, wanted, False
        else:
            raise Unsupported(CLASSES)
