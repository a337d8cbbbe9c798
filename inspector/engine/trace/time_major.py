"""Recurrent modules that go along the sequences of a batch instead of along their steps: batch_first was forgotten."""

from __future__ import annotations

from inspector.analysis.along_batch import ALONG
from inspector.engine.cells.family import sequence_family
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.own_axes import RecordedReads
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import class_name
from inspector.records import counted

ACROSS = (
    ALONG + ": make {} with batch_first=True, or give it the input transposed; it was given its input as "
    "(batch, step, …), so it goes along the {} as if they were steps, and not along the {}."
)


def warn_of_time_major(trace: Trace, emit: Emitter) -> None:
    """Say of every such module what it does, under its states, where one looks for them."""
    first = trace.batch.first
    for name in along_the_batch(trace):
        emit.refuse(f"{name}:h", across(name, trace.batch.size, first.steps))


def across(name: str, sequences: int, steps: int) -> str:
    """What a module does that goes along the sequences of its batch, and how that is changed."""
    return ACROSS.format(name, counted(sequences, "sequence"), counted(steps, "step"))


def along_the_batch(trace: Trace) -> list[str]:
    """The names of the modules that go along the sequences of the batch."""
    recorded = trace.findings.get(RecordedReads)
    names = dict.fromkeys(recorded.across if recorded is not None else ())
    if _alone(trace):
        names[class_name(trace.subject.model).lower()] = None
    return list(names)


def _alone(trace: Trace) -> bool:
    """Whether the whole model is such a module: then none of its operations is recorded."""
    model, first = trace.subject.model, trace.batch.first
    plain = sequence_family(model) is not None and trace.subject.forward is None and not first.batch_dim
    return plain and getattr(model, "batch_first", None) is False and first.steps > 1 and not trace.observed
