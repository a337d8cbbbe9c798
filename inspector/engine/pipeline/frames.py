"""How a frame begins in a capture: its record, and the labels of what it ran on."""

from __future__ import annotations

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.records import CLASS_DOMAIN, STEP_DOMAIN, VOCABULARY_DOMAIN, Frame


def begin_frame(subject: Subject, batch: Batch, sink: Sink, options: RunOptions, frame: Frame) -> Emitter:
    """Write the frame and the labels of steps, tokens and classes; the emitter of its channels."""
    sink.write(frame)
    emit = Emitter(sink, frame.index, options.cancelled, options.progress)
    if batch.names and batch.names[batch.look_at]:
        emit.labels(STEP_DOMAIN, batch.names[batch.look_at])  # those of other inputs: trace/target_steps.py
    for name, one in subject.declared.items():
        domain = subject.vocabulary_domain(name)
        if one.vocabulary is not None and domain != VOCABULARY_DOMAIN:
            emit.labels(domain, list(one.vocabulary), every_frame=True)
    if subject.vocabulary is not None:
        emit.labels(VOCABULARY_DOMAIN, list(subject.vocabulary), every_frame=True)
    if subject.labels is not None:
        emit.labels(CLASS_DOMAIN, list(subject.labels), every_frame=True)
    return emit
