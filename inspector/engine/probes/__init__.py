"""The shelf of probes: one file a module family. A probe watches a model run and fills a Trace."""

from __future__ import annotations

from typing import Protocol

from torch import nn

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace


class Probe(Protocol):
    """Watches one family of modules while the user's model runs.

    A probe is made fresh for every run. `attach` installs hooks or modes; `detach` removes every one of them and
    is called also when the model raised. `finish` runs after the model (and after the one backward pass): it
    turns what was seen into Recurrences or Attentions of the trace. Nothing that a probe does may raise into the
    user's model, change its outputs, or draw random numbers.
    """

    summary: str

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Install hooks; `emit` may be used to write pages live."""

    def detach(self) -> None:
        """Remove whatever `attach` installed. Idempotent."""

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put what was seen into the trace; refusals go to `emit.refuse`."""
