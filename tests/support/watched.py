"""A model run under every probe, as the tests of hand-written recurrences look at it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Recurrence, Trace


def seen(
    model: nn.Module, x: Tensor, lengths: Sequence[int] = (), quantities: Sequence[str] = ("states",)
) -> tuple[list[Recurrence], Kept, Trace]:
    """What a run finds: recurrences, records, trace. Loss: squares of the output at every step."""
    b, t = x.shape[:2]
    subject = Subject(
        model=model, kind="vectors", width=x.shape[-1], loss=lambda out, batch: out.square().flatten(2).sum(-1)
    )
    kept = Kept()
    trace = perform(subject, Batch(x, torch.tensor(lengths or [t] * b)), kept, RunOptions(only=tuple(quantities)))
    return trace.recurrences, kept, trace
