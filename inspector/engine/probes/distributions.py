"""Hidden variables of any model: every use of torch.distributions, and samples that the code draws itself."""

from __future__ import annotations

import torch
from torch import nn

from inspector.engine.latent.calls import DistributionCalls
from inspector.engine.latent.layout import axes_of
from inspector.engine.latent.variables import variables_of
from inspector.engine.latent.watched import DistributionWatch
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import Log

FULL = "More than {:,} uses of torch.distributions; those after them are not shown. A shorter sequence shows all."
BROKEN = "Watching torch.distributions failed ({}), so hidden variables are not shown."


@PROBES.register("distributions")
class DistributionProbe:
    """Notes distributions, samples and divergences while the model runs; `finish` makes hidden variables of them."""

    summary = "torch.distributions in any model: parameters, samples and KL terms by step"

    def __init__(self) -> None:
        self._watch: DistributionWatch | None = None

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Wrap the classes of torch.distributions until `detach`."""
        calls = DistributionCalls()
        trace.findings.put(calls)
        self._watch = DistributionWatch(model, calls)
        self._watch.begin()

    def detach(self) -> None:
        """Leave the classes as they were."""
        if self._watch is not None:
            self._watch.end()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put the variables into the trace."""
        if self._watch is None:
            return
        calls, broken, self._watch = self._watch.calls, self._watch.broken, None
        if broken:
            emit.refuse("model:latent", BROKEN.format(broken))
        if calls.full:
            emit.sink.write(Log(FULL.format(calls.count), "warning", "engine"))
        with torch.no_grad():
            found = variables_of(calls, axes_of(trace))
        for channel, reason in found.refused.items():
            emit.refuse(channel, reason)
        trace.findings.put(found)
        trace.findings.put(DistributionCalls())  # what was noted is released
