"""Fused nn.RNN, nn.GRU and nn.LSTM: they run as they are, and everything inside is recomputed afterwards.

A forward hook keeps the input, the initial state, the weights and what the module returned. Afterwards every layer
and direction is laid open: lower layers (whose outputs the fused kernel does not return) run once more, one fused
layer each, with the very weights; then all gates of all steps come from one batched product. The recomputation has
to reproduce what the module returned, or everything derived from it is refused (see engine/recurrent/fused/layers.py).

A module that is called step by step is one walk, as long as each call is given the state that the one before
returned; other calls get places of their own ("rnn#2.l0"). Not seen: TorchScript, quantized modules, compiled code.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.hooks import RemovableHandle

from inspector.engine.errors import CancelledError
from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.hooks.recorder import AfterHook, Recorder
from inspector.engine.recurrent.fused.calls import FusedCall, returned_states
from inspector.engine.recurrent.fused.layers import Walk, class_name, lay_open
from inspector.engine.registries import PROBES
from inspector.engine.session.wording import told
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

MOST_WALKS = 64
"""Places that one module may fill in one run."""


class _Recorder(Recorder):
    """What the hooks write to. A copy of the model made meanwhile (an EMA) gets a recorder that keeps nothing."""

    def __init__(self, trace: Trace | None = None, emit: Emitter | None = None) -> None:
        super().__init__(trace, emit)
        self.walks: list[Walk] = []
        self.open: dict[str, tuple[Walk, list[tuple[Tensor, int]]]] = {}
        self.counts: dict[str, int] = {}
        self.random: dict[str, Tensor] = {}

    def before(self, place: str, module: nn.Module) -> None:
        """Note the random state that dropout between the layers is going to draw from."""
        if self.trace is not None and module.training and not in_backward():
            with suppress(Exception):
                self.random[place] = torch.get_rng_state()

    def keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        assert isinstance(module, nn.RNNBase) and self.trace is not None
        given = args[0] if args else kwargs.get("input")
        initial = args[1] if len(args) > 1 else kwargs.get("hx")
        problem = _not_ours(module, given, initial, output)
        if problem:
            self.give_up(place, problem.format(place))
            return
        assert isinstance(given, (Tensor, PackedSequence))
        dropping = module.training and module.dropout > 0 and module.num_layers > 1
        random = self.random.pop(place, None)
        call = FusedCall(
            given, initial, output[0], output[1], dropping, _weights(module),
            random if dropping and output[1][0].device.type == "cpu" else None, _autocast(output[1][0]),
            any(item.requires_grad for item in initial or ()) if isinstance(initial, tuple)
            else initial is not None and initial.requires_grad,
        )  # fmt: skip
        returned = returned_states(call.final)
        for name, tensor in call.returned():
            if tensor.requires_grad:
                self.trace.wants_gradient.append((tensor, call.receiver(name)))
                call.asked.append((tensor, tensor._version))
        call.settle()
        walk, last = self.open.get(place, (None, []))
        if walk is not None and not module.bidirectional and call.continues(walk.calls[-1], initial, last):
            walk.calls.append(call)
        else:
            walk = self._begin(place, module, call)
        if walk is not None:
            self.open[place] = walk, returned

    def _begin(self, place: str, module: nn.RNNBase, call: FusedCall) -> Walk | None:
        number = self.counts[place] = self.counts.get(place, 0) + 1
        if number > MOST_WALKS:
            self.give_up(place, f"{place} is called again and again; only its first {MOST_WALKS} calls are shown.")
            return None
        walk = Walk(place if number == 1 else f"{place}#{number}", module, [call])
        self.walks.append(walk)
        return walk


def _not_ours(module: nn.RNNBase, given: Any, initial: Any, output: Any) -> str:
    """Why a call cannot be understood, or "": a subclass may take and return what it likes."""
    sequence = (Tensor, PackedSequence)
    pair = isinstance(output, tuple) and len(output) == 2 and isinstance(output[0], sequence)
    parts = 2 if isinstance(module, nn.LSTM) else 1
    if not pair or not isinstance(given, sequence) or isinstance(given, Tensor) != isinstance(output[0], Tensor):
        return "{} takes or returns something else than the class it derives from, so it cannot be laid open."
    for value in (output[1], *([initial] if initial is not None else [])):
        items = value if isinstance(value, (tuple, list)) else (value,)
        if len(items) != parts or not all(isinstance(item, Tensor) for item in items):
            return "{} takes or returns a state that the class it derives from does not, so it cannot be laid open."
    tensors = [given, output[0]] if isinstance(given, Tensor) else [given.data, output[0].data]
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        return "{} ran inside a torch.func transform, where its tensors cannot be kept."
    return ""


def _weights(module: nn.RNNBase) -> dict[str, Tensor]:
    """The effective weights of the call that has just been made, as the module itself took them.

    Read from where the module keeps them, not by name: a parametrised weight is computed anew at every look.
    """
    pairs = zip(module._flat_weights_names, module._flat_weights, strict=True)
    return {name: weight.detach() for name, weight in pairs if isinstance(weight, Tensor)}


def _autocast(tensor: Tensor) -> tuple[str, torch.dtype] | None:
    kind = tensor.device.type
    return (kind, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None


@PROBES.register("fused-rnn")
class FusedRnn:
    """Watches every nn.RNN, nn.GRU and nn.LSTM of a model."""

    summary = "nn.RNN, nn.GRU, nn.LSTM: states, gates and candidates of every layer, direction and step"

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._recorder = _Recorder()
        self._compiled: dict[str, str] = {}

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """One forward hook on each fused module, and one before it where dropout draws between its layers."""
        self._recorder = recorder = _Recorder(trace, emit)
        compiled = [name for name, module in model.named_modules() if hasattr(module, "_orig_mod")]
        for name, module in model.named_modules():
            place = name.replace("_orig_mod.", "") or class_name(module).lower()
            if _unseen(module):
                emit.refuse(f"{place}:h", _UNSEEN[_unseen(module)].format(place))
            if not isinstance(module, nn.RNNBase):
                continue
            if any(name.startswith(f"{outer}.".lstrip(".")) for outer in compiled):
                self._compiled[place] = name
            self._handles.append(module.register_forward_hook(AfterHook(recorder, place), with_kwargs=True))
            if module.dropout > 0 and module.num_layers > 1:
                self._handles.append(module.register_forward_pre_hook(_Before(recorder, place)))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Lay every walk open and put its layers and directions into the trace."""
        recorder = self._recorder
        for place in self._compiled:
            if place not in recorder.counts and place not in recorder.broken:
                emit.refuse(f"{place}:h", _COMPILED.format(place))
        for walk in recorder.walks:
            emit.check()
            try:
                with torch.no_grad():
                    trace.recurrences += lay_open(
                        walk, trace.batch.lengths, trace.look_at, emit, only=trace.only_looked_at
                    )
            except CancelledError:
                raise
            except Exception as fault:  # noqa: BLE001 - one module may not take the others along
                emit.refuse(f"{walk.place}:h", f"Opening {walk.place} failed ({told(fault)}).")
        recorder.walks.clear()
        recorder.open.clear()


_COMPILED = (
    "{} runs inside torch.compile and its hooks were not called (code compiled before they were there never calls "
    "them), so nothing of it is seen; open the model without torch.compile."
)
_UNSEEN = {
    "script": "{} is TorchScript, whose modules take no hooks, so nothing of it is seen; open the eager model instead.",
    "quantized": "{} is quantized, so its weights and steps are not those of the plain module; open the float model.",
}


def _unseen(module: nn.Module) -> str:
    """Why a recurrent module cannot be watched ("script", "quantized"), or ""."""
    name = getattr(module, "original_name", type(module).__name__)
    if not str(name).startswith(("RNN", "GRU", "LSTM")):
        return ""
    if isinstance(module, torch.jit.ScriptModule):
        return "script"
    return "quantized" if "quantized" in type(module).__module__ else ""


class _Before:
    """A pre-forward hook; see AfterHook."""

    def __init__(self, recorder: _Recorder, place: str) -> None:
        self.recorder, self.place = recorder, place

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self.recorder.before(self.place, module)
