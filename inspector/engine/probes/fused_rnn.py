"""Modules that run whole sequences: they run as they are, and everything inside is recomputed afterwards.

That is nn.RNN, nn.GRU and nn.LSTM, and the modules of other families of cells (engine/cells/).

A forward hook stores the input, the initial state, the weights and what the module returned. Afterwards every layer and
direction is unpacked: lower layers (whose outputs the fused kernel does not return) run once more, one fused layer
each, with the same weights; then all gates of all steps come from one batched product. The recomputation has to
reproduce what the module returned, or everything derived from it is rejected (see engine/recurrent/fused/layers.py).

A module that is called step by step is one chain, as long as each call is given the state that the one before
returned; other calls get places of their own ("rnn#2.l0"). Not recorded: TorchScript, quantized modules, compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.hooks import RemovableHandle

from inspector.engine.cells.family import CellFamily, Stack, class_names, sequence_family
from inspector.engine.cells.torch_family import TorchFamily
from inspector.engine.devices.random_state import State, states_of
from inspector.engine.errors import CancelledError
from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.hooks.recorder import AfterHook, CallRecorder
from inspector.engine.recurrent.fused.calls import FusedCall, connected_parts, returned_states
from inspector.engine.recurrent.fused.layers import CallChain, class_name, unpack
from inspector.engine.recurrent.traced.record.values import storage_of
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.upstream import Upstream
from inspector.engine.wording import error_text

MOST_CHAINS = 64
"""Places that one module may fill in one run."""


class _Recorder(CallRecorder):
    """The recorder to which the hooks write.
    A copy of the model made meanwhile (an EMA) gets one that records nothing."""

    def __init__(self, trace: Trace | None = None, emit: Emitter | None = None) -> None:
        super().__init__(trace, emit)
        self.chains: list[CallChain] = []
        self.open: dict[str, tuple[CallChain, list[tuple[Tensor, int]]]] = {}
        self.counts: dict[str, int] = {}
        self.more: dict[str, set[int]] = {}
        """Of calls that begin a chain after the first MOST_CHAINS: the memory of their outputs."""
        self.random: dict[str, State] = {}

    def before(self, place: str, module: nn.Module) -> None:
        """Store the random state that dropout between the layers is going to use."""
        if self.trace is not None and module.training and not in_backward():
            with suppress(Exception):
                self.random[place] = _drawn_from(module)

    def keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        family = sequence_family(module)
        assert family is not None and self.trace is not None
        given, initial = family.arguments(module, args, kwargs)
        results = family.results(module, output)
        problem = _not_ours(family, given, initial, results)
        if results is None or problem:
            self.give_up(place, problem.format(place))
            return
        made, final = results
        stack, data = family.stack(module), made.data if isinstance(made, PackedSequence) else made
        dropping = module.training and stack.dropout > 0 and stack.layers > 1
        random = self.random.pop(place, {})
        call = FusedCall(
            given, initial, made, final, family.parts, dropping, family.weights(module),
            random if dropping else {}, _autocast(data),
        )  # fmt: skip
        if isinstance(family, TorchFamily) and isinstance(given, Tensor) and not self._one_of_many(given, stack):
            call.kept_gates = family.kept(module, data)
        fed = given.data if isinstance(given, PackedSequence) else given
        call.memory, returned = storage_of(data), returned_states(call.final)
        chain, last = self.open.get(place, (None, []))
        goes_on = chain is not None and stack.directions == 1 and call.continues(chain.calls[-1], initial, last)
        call.followed = fed.requires_grad or (not goes_on and any(one.requires_grad for one in initial))
        search = Upstream()
        search.add((fed, *(() if goes_on else initial)))
        call.upstream = search.found()
        if not goes_on and self.counts.get(place, 0) == MOST_CHAINS:
            self.more.setdefault(place, set()).add(call.memory)
            self.open.pop(place, None)
            return
        self._ask_for_gradients(self.trace, module, call)
        if goes_on and chain is not None:
            call.connected = connected_parts(family.parts, initial, last)
            chain.calls.append(call)
        else:
            chain = self._begin(place, module, family, call)
        self.open[place] = chain, returned

    @staticmethod
    def _ask_for_gradients(trace: Trace, module: nn.Module, call: FusedCall) -> None:
        trace.parameter_gradients.ask(trace.want_gradient, module.parameters())
        trace.parameter_gradients.ask_made(trace.want_gradient, vars(module).values())
        for name, tensor in call.returned():
            if tensor.requires_grad:
                trace.want_gradient(tensor, call.receiver(name))
                call.asked.append((tensor, tensor._version))
        call.settle()

    def _one_of_many(self, given: Tensor, stack: Stack) -> bool:
        """Whether one sequence of several is shown: its gates cost less than holding those of all."""
        assert self.trace is not None
        return self.trace.only_looked_at and given.dim() == 3 and given.shape[0 if stack.batch_first else 1] > 1

    def _begin(self, place: str, module: nn.Module, family: CellFamily, call: FusedCall) -> CallChain:
        number = self.counts[place] = self.counts.get(place, 0) + 1
        chain = CallChain(place if number == 1 else f"{place}#{number}", module, family, [call])
        self.chains.append(chain)
        return chain


def _not_ours(
    family: CellFamily, given: Any, initial: tuple[Any, ...], results: tuple[Any, tuple[Any, ...]] | None
) -> str:
    """Why a call cannot be read, or "": a subclass may take and return anything."""
    sequence = (Tensor, PackedSequence)
    made: Any
    made, final = results or (None, ())
    known = isinstance(made, sequence) and isinstance(given, sequence)
    if not known or isinstance(given, Tensor) != isinstance(made, Tensor):
        return "{} takes or returns something other than the class it derives from, so it cannot be unpacked."
    count = len(family.parts)
    for state, allowed in ((final, (count,) if family.opaque else (0, count)), (initial, (0, count))):
        if len(state) not in allowed or not all(isinstance(item, Tensor) for item in state):
            return "{} takes or returns a state that the class it derives from does not, so it cannot be unpacked."
    tensors = [one if isinstance(one, Tensor) else one.data for one in (given, made)]
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        return "{} ran inside a torch.func transform, where its tensors cannot be stored."
    return ""


def _drawn_from(module: nn.Module) -> State:
    """The state of the generator from which dropout between the layers is going to draw; {} where the kernel has one of
    its own, as cuDNN does: what it drops cannot be drawn again."""
    device = next(module.parameters()).device
    if device.type == "cuda" and torch.backends.cudnn.enabled:
        return {}
    return states_of([device])


def _autocast(tensor: Tensor) -> tuple[str, torch.dtype] | None:
    kind = tensor.device.type
    return (kind, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None


@PROBES.register("fused-rnn")
class FusedRnn:
    """Records every module of a model that runs whole sequences and belongs to a known family."""

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
            family = sequence_family(module)
            if family is None:
                continue
            if any(name.startswith(f"{outer}.".lstrip(".")) for outer in compiled):
                self._compiled[place] = name
            self._handles.append(module.register_forward_hook(AfterHook(recorder, place), with_kwargs=True))
            stack = family.stack(module)
            if stack.dropout > 0 and stack.layers > 1:
                self._handles.append(module.register_forward_pre_hook(_Before(recorder, place)))

    def detach(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Unpack every chain and put its layers and directions into the trace."""
        recorder = self._recorder
        for place in self._compiled:
            if place not in recorder.counts and place not in recorder.broken:
                emit.refuse(f"{place}:h", _COMPILED.format(place))
        for place, calls in recorder.more.items():
            if not calls <= trace.calls_within:
                emit.refuse(f"{place}:h", TOO_OFTEN.format(place, MOST_CHAINS))
        for chain in recorder.chains:
            if any(call.memory in trace.calls_within for call in chain.calls):  # shown as a part of a larger step
                continue
            emit.check()
            guarded(chain.place, emit, partial(_open, chain, trace, emit))
        recorder.chains.clear()
        recorder.open.clear()


TOO_OFTEN = "{} is called too often; only its first {} calls are shown."


def _open(chain: CallChain, trace: Trace, emit: Emitter) -> None:
    """Put the layers of a chain into the trace; their gradients follow when the states have been written."""
    found, fill = unpack(
        chain, trace.batch.lengths, trace.look_at, emit, only=trace.only_looked_at, compare=not trace.compared
    )
    trace.recurrences += found
    trace.after_states.append(partial(guarded, chain.place, emit, fill))


def guarded(place: str, emit: Emitter, work: Callable[[], None]) -> None:
    """Do something for one module; a fault in it is reported there."""
    try:
        with torch.no_grad():
            work()
    except CancelledError:
        raise
    except Exception as fault:  # noqa: BLE001 - a failure of one module must not affect the others
        emit.refuse(f"{place}:h", f"Opening {place} failed ({error_text(fault)}).")


_COMPILED = (
    "{} runs inside torch.compile and its hooks were not called (code compiled before they were there never calls "
    "them), so nothing of it is recorded; open the model without torch.compile."
)
_UNSEEN = {
    "script": "{} is TorchScript, whose modules take no hooks, so it is not recorded; open the eager model instead.",
    "quantized": "{} is quantized, so its weights and steps are not those of the plain module; open the float model.",
}


def _unseen(module: nn.Module) -> str:
    """Why a recurrent module cannot be recorded ("script", "quantized"), or ""."""
    name = getattr(module, "original_name", type(module).__name__)
    if not str(name).startswith(class_names()):
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
