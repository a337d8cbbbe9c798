"""Fused nn.RNN, nn.GRU and nn.LSTM: they run as they are, and everything inside is recomputed afterwards.

A forward hook keeps the input, the initial state and what the module returned. Afterwards every layer and
direction is laid open: lower layers (whose outputs the fused kernel does not return) run once more, one fused
layer each, with the very weights; then all gates of all steps come from one batched product. The recomputation has
to reproduce what the module returned, or everything derived from it is refused (see engine/fused.py).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from inspector.engine.emitter import Emitter
from inspector.engine.fused import FusedCall, class_name, lay_open
from inspector.engine.shelves import PROBES
from inspector.engine.trace import Trace


@dataclass(slots=True)
class _Seen:
    """One call of a fused module, as the hook saw it."""

    place: str
    module: nn.RNNBase
    call: FusedCall
    versions: tuple[tuple[Tensor, int], ...]


class Recorder:
    """What the hooks write to. A copy of the model made meanwhile (an EMA) gets a recorder that keeps nothing."""

    def __init__(self, trace: Trace | None, emit: Emitter | None) -> None:
        self.trace, self.emit = trace, emit
        self.seen: list[_Seen] = []
        self.calls: dict[str, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorder:
        return Recorder(None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recorder, (None, None)

    def hook(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Keep one call. Never raises into the user's model: a fault becomes a refusal."""
        if self.trace is None or self.emit is None:
            return
        try:
            self._keep(place, module, args, kwargs, output)
        except Exception as fault:  # noqa: BLE001 - a probe may not end the user's run
            self.emit.refuse(f"{place}:h", f"Watching {place} failed ({type(fault).__name__}: {fault}).")

    def _keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        assert isinstance(module, nn.RNNBase) and self.trace is not None
        given = args[0] if args else kwargs["input"]
        initial = args[1] if len(args) > 1 else kwargs.get("hx")
        number = self.calls[place] = self.calls.get(place, 0) + 1
        call = FusedCall(given, initial, output[0], output[1], module.training)
        kept = tuple((tensor, tensor._version) for tensor in call.tensors() if not tensor.is_inference())
        seen = _Seen(place if number == 1 else f"{place}#{number}", module, call, kept)
        self.seen.append(seen)
        for name, tensor in call.returned():
            if tensor.requires_grad:
                self.trace.wants_gradient.append((tensor, call.receiver(name)))


@PROBES.register("fused-rnn")
class FusedRnn:
    """Watches every nn.RNN, nn.GRU and nn.LSTM of a model."""

    summary = "nn.RNN, nn.GRU, nn.LSTM: states, gates and candidates of every layer, direction and step"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._recorder = Recorder(None, None)

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """One forward hook on each fused module."""
        self._recorder = Recorder(trace, emit)
        for name, module in model.named_modules():
            if not isinstance(module, nn.RNNBase):
                continue
            place = name.removeprefix("_orig_mod.") or class_name(module).lower()
            recorder = self._recorder
            self._handles.append(module.register_forward_hook(_Hook(recorder, place), with_kwargs=True))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Lay every call open and put its layers and directions into the trace."""
        for seen in self._recorder.seen:
            if any(tensor._version != version for tensor, version in seen.versions):
                emit.refuse(
                    f"{seen.place}:h",
                    f"The model overwrote the input or output of {seen.place} in place, so it cannot be shown.",
                )
                continue
            try:
                only = trace.look_at if trace.only_looked_at else None
                with torch.no_grad():
                    trace.recurrences += lay_open(seen.place, seen.module, seen.call, trace.batch.lengths, emit, only)
            except Exception as fault:  # noqa: BLE001 - one module may not take the others along
                emit.refuse(f"{seen.place}:h", f"Opening {seen.place} failed ({type(fault).__name__}: {fault}).")


class _Hook:
    """A picklable, copyable forward hook; `copy.deepcopy` of a watched model copies it without the recording."""

    def __init__(self, recorder: Recorder, place: str) -> None:
        self.recorder, self.place = recorder, place

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook(copy.deepcopy(self.recorder, memo), self.place)

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self.recorder.hook(self.place, module, args, kwargs, output)
