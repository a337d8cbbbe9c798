"""Modules that say that they are a hidden Markov or a linear Gaussian model: their matrices, what they were given."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.errors import Unsupported
from inspector.engine.hooks.recorder import AfterHook, CallRecorder
from inspector.engine.latent.declared import DeclaredModels, declared_by, kind_of
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

AGAIN = "{} was called more than once; its hidden states are shown for the first call."


class _Recorder(CallRecorder):
    """Asks a module what it is after its first call."""

    def keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Put what the module says into the trace, or say why not."""
        assert self.trace is not None and self.emit is not None
        found = self.trace.findings.of(DeclaredModels).found
        if any(one.place == place for one in found):
            self.emit.refuse(f"{place}:latent/again", AGAIN.format(place))
            return
        given = args or tuple(kwargs.values())
        try:
            found.append(declared_by(place, module, given, self.trace))
        except Unsupported as reason:
            self.emit.refuse(f"{place}:latent", str(reason))

    def give_up(self, place: str, reason: str) -> None:
        """The user's own method may raise anything."""
        self.broken.add(place)
        if self.emit is not None:
            self.emit.refuse(f"{place}:latent", reason)


@PROBES.register("state-space")
class StateSpaceProbe:
    """One forward hook on every module with `linear_gaussian` or `hidden_markov`."""

    summary = "Modules with linear_gaussian() or hidden_markov(inputs): the hidden states that they stand for"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Hook those modules."""
        recorder = _Recorder(trace, emit)
        for name, module in model.named_modules():
            if kind_of(module):
                hook = AfterHook(recorder, name or "model")
                self._handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Nothing: the modules were asked while they ran."""
