"""nn.Embedding: the gradient of the loss at each token that was looked up, by one forward hook on every embedding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.registries import PROBES
from inspector.engine.trace.embedding_calls import EmbeddingCall, EmbeddingCalls
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

MOST_CALLS = 100_000
"""Most calls of one embedding that are recorded: a decoder looks up one token a call."""


@PROBES.register("embedding")
class Embedding:
    """Requests the gradient of the output of every nn.Embedding."""

    summary = "nn.Embedding: the gradient of the loss at every token looked up"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """One forward hook on each; none without a loss, as there are no gradients then."""
        if not trace.may_have_gradients:
            return
        for name, module in model.named_modules():
            if isinstance(module, nn.Embedding):
                self._handles.append(module.register_forward_hook(_Hook(trace, name or "embedding")))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """A quantity reads the gradients, which are complete by now; what the device holds is released."""
        for calls in trace.findings.of(EmbeddingCalls).by_place.values():
            for call in calls:
                call.output, call.ids = None, call.ids.cpu()


class _Hook:
    """Stores the ids of a call and requests the gradient of its result; a copy of the model does not record."""

    def __init__(self, trace: Trace | None, place: str) -> None:
        self.trace, self.place = trace, place

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook(None, self.place)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, (None, self.place)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if self.trace is None or torch.compiler.is_compiling() or in_backward():
            return
        if not args or not isinstance(args[0], Tensor) or not isinstance(output, Tensor) or not output.requires_grad:
            return
        if output.shape[:-1] != args[0].shape:
            return
        calls = self.trace.findings.of(EmbeddingCalls).by_place.setdefault(self.place, [])
        if len(calls) < MOST_CALLS:
            call = EmbeddingCall(args[0].detach().clone(), output, output._version)
            calls.append(call)
            self.trace.want_gradient(output, call.take)
