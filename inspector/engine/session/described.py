"""What the window needs to know about a model that was opened."""

from __future__ import annotations

from inspector.engine.model.named_batches import primary_value
from inspector.engine.opening.open_subject import Opened, places
from inspector.records import WEIGHTS, Load, Loaded


def describe(opened: Opened, load: Load) -> Loaded:
    """What the window needs to know about the model that was opened."""
    subject = opened.subject
    first = primary_value(subject, next(iter(subject.examples.values()), ""))
    vocabulary = subject.vocabulary or ()
    return Loaded(
        subject=load.subject, title=opened.title, width=subject.width,
        kind=str(subject.kind) if opened.tensors is None else WEIGHTS,
        vocabulary=len(vocabulary), characters=bool(vocabulary) and all(len(str(entry)) == 1 for entry in vocabulary),
        examples=tuple(subject.examples), default_text=first if isinstance(first, str) else "",
        typed="ids" if subject.kind == "tokens" and not vocabulary and subject.encode is None else "",
        audio=subject.frames is not None, has_data=subject.data is not None, has_loss=subject.loss is not None,
        places=places(subject.model),
        report=opened.report, needs_consent=opened.pending, generation=load.generation,
    )  # fmt: skip
