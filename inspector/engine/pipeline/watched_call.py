"""One call of a model that the user's code makes, with its backward pass or without: observed, analysed, one frame.

Nothing of the call is owned: no seed is set and no gradient is computed that the caller does not compute; outputs,
gradients and random state are those of the call without it. What was recorded is analysed when the context is left, so
leave it before the optimizer changes the weights.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline.analyse import analyse, chosen_quantities
from inspector.engine.pipeline.frames import begin_frame
from inspector.engine.pipeline.observe import observe
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.results import keep_loss, keep_output
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Sink
from inspector.engine.trace.trace import Trace
from inspector.records import Frame


class WatchedCall:
    """The context around the call. Raises InputError for unknown quantities, CaptureError when writing fails."""

    def __init__(self, model: Any, batch: Batch, sink: Sink, options: RunOptions, frame: Frame) -> None:
        subject = adopt(model)
        self.keys = chosen_quantities(options)
        self.trace = Trace(
            subject, batch, only_looked_at=options.only_selected, states=options.states, observed=True
        )  # fmt: skip
        self._sink, self._options, self._frame = sink, options, frame
        self._losses: Tensor | None = None

    def losses(self, values: Tensor) -> None:
        """Show the loss of every step, (b, t), NaN where a step carries none; gradients are recorded without it too."""
        self._losses = values.detach()

    def __enter__(self) -> WatchedCall:
        trace, options = self.trace, self._options
        self.emit = begin_frame(trace.subject, trace.batch, self._sink, options, self._frame)
        self.emit.copies = True
        probes = [PROBES[key]() for key in options.probes or PROBES]
        self.observation = observe(trace.subject.model, trace, self.emit, probes).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self.observation.__exit__(kind, fault, where)
        if fault is not None and not isinstance(fault, Exception):
            return  # the program is exiting
        with torch.no_grad():
            if self.observation.output is not None:
                keep_output(self.trace, self.observation.output, self.emit)
            if self._losses is not None:
                keep_loss(self.trace, self._losses, self.emit)
        self.observation.finish()
        analyse(self.trace, self.emit, self.keys)


def batch_of(inputs: Any) -> Batch:
    """A batch as it is, or one of (b, t) ids or (b, t, i) numbers without padding. Raises InputError."""
    if isinstance(inputs, Batch):
        return inputs
    if not isinstance(inputs, Tensor) or inputs.dim() != (3 if inputs.is_floating_point() else 2):
        given = f"shape {tuple(inputs.shape)}" if isinstance(inputs, Tensor) else type(inputs).__name__
        raise InputError(
            f"The inputs have {given}; expected ids (batch, step), numbers (batch, step, width) or a Batch."
        )
    return Batch(inputs, torch.full((len(inputs),), inputs.shape[1]))
