"""Attention of every kind: scaled_dot_product_attention, multi-head attention, fused encoder layers, plain softmax.

A TorchFunctionMode sees the attention functions wherever user code calls them. Its presence turns off the fused eval
path of nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerEncoder, which would change their results in
the last bits; so it is switched off while such a module runs, and queries and keys are recomputed from the module's
input beside the unchanged call. Outputs are therefore bitwise identical to those of a run without the probe. (A
subclass with a forward of its own that calls the fused forward is the exception: it runs unfused.) Not recorded:
attention inside TorchScript and torch.compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from inspector.engine.attention.ahead import Ahead, ahead
from inspector.engine.attention.functions import Handler, functions_looked_at
from inspector.engine.attention.live import LiveRows
from inspector.engine.attention.one_pass import STATISTICS
from inspector.engine.attention.recorder import AttentionRecorder
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written.untaken import lines
from inspector.engine.hooks.function_mode import FUSED, SwitchedMode, runs_fused
from inspector.engine.hooks.large_products import PRODUCTS, product_bytes
from inspector.engine.hooks.module_stack import CalledModules, ModuleStack
from inspector.engine.registries import PROBES, QUANTITIES
from inspector.engine.scans.search import Scans
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.target_steps import source_of
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Log

MAPS = "attention/maps"


@dataclass(slots=True)
class Call:
    """A module being called: does it run fused (without the mode), and did an attention module run inside it?"""

    fused: bool
    attended: bool = False


@PROBES.register("attention")
class AttentionProbe:
    """Records queries and keys of every attention of the selected sample; see the module docstring."""

    summary = "Attention of every kind: scaled dot product, multi-head, encoder and decoder layers, plain softmax"

    def __init__(self) -> None:
        self._recorder: AttentionRecorder | None = None
        self._stack: ModuleStack | None = None
        self._mode: AttentionMode | None = None
        self._calls: list[Call] = []
        self._scripted = False
        self._ahead: Ahead | None = None

    def attach(self, model: nn.Module, trace: Trace, emit: Emitter) -> None:
        """Install the mode, and global hooks where modules may run fused;
        nothing for a compiled model, which is reported."""
        compiled = _compiled(model)
        if compiled is not None:
            emit.refuse(f"{compiled}:attention", _COMPILED.format(compiled))
            return
        self._scripted = any(isinstance(module, torch.jit.ScriptModule) for module in model.modules())
        batch = trace.batch
        selected = SelectedSample(batch.size, batch.look_at, batch.length, batch.steps, trace.subject.elsewhere)
        selected.passing_on, selected.products, selected.lineages = trace.passing_on, trace.products, trace.lineages
        selected.choices = trace.batch_axes
        if any(isinstance(module, FUSED) for module in model.modules()):
            self._stack = ModuleStack(model, self._entered, self._left)
        rows = LiveRows(emit, batch.look_at, partial(source_of, trace))
        self._ahead = _begun(trace, emit)
        looks = [rows.arrived] if self._ahead is None else [rows.arrived, self._ahead.arrived]
        self._recorder = AttentionRecorder(selected, (self._stack or CalledModules(model)).place, partial(_all, looks))
        self._mode = AttentionMode(self._recorder)
        self._mode.on(True)

    def detach(self) -> None:
        """Remove mode and hooks; no map is written ahead any more."""
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None
        if self._mode is not None:
            self._mode.on(False)
        if self._stack is not None:
            self._stack.close()
        self._mode = self._stack = None

    def finish(self, trace: Trace, emit: Emitter) -> None:
        """Put the attentions into the trace."""
        recorder = self._recorder
        if recorder is None:
            return
        trace.attentions.extend(recorder.attentions())
        for place, reason in recorder.refused.items():
            emit.refuse(f"{place}:attention", reason)
        scans = trace.findings.of(Scans).places
        for line in lines(one for one in recorder.own.origins if one.kind != "linear" or one.place not in scans):
            emit.sink.write(Log(line, "info", "engine"))
        if recorder.broken:
            emit.refuse("model:attention", recorder.broken)
        if self._scripted and not recorder.seen:
            emit.sink.write(
                Log("Attention inside TorchScript cannot be seen; open the eager model instead.", "warning")
            )

    def _entered(self, module: nn.Module) -> None:
        self._calls.append(Call(runs_fused(module)))
        self._switch()

    def _left(self, module: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        assert self._stack is not None and self._recorder is not None
        depth = len(self._stack.modules)
        call = self._calls[depth]
        del self._calls[depth:]
        if call.fused and out is not None:
            name = self._stack.name(module)
            if isinstance(module, nn.MultiheadAttention):
                self._recorder.guarded(self._recorder.module, module, name, args, kwargs, out)
                if self._calls:
                    self._calls[-1].attended = True
            elif isinstance(module, nn.TransformerEncoderLayer) and not call.attended:
                self._recorder.guarded(self._recorder.layer, module, name, args, kwargs, out)
        self._switch()

    def _switch(self) -> None:
        if self._mode is not None:
            self._mode.on(not (self._calls and self._calls[-1].fused))


class AttentionMode(SwitchedMode):
    """Calls every torch function as it is and passes the attention ones, with their result, to the recorder."""

    def __init__(self, recorder: AttentionRecorder) -> None:
        super().__init__()
        self._recorder = recorder
        own, self.handlers = recorder.own, {}
        for function, handler in functions_looked_at(recorder):
            concerns = own.concerns(handler)
            guarded = partial(self._handle, partial(recorder.guarded, handler))
            self.handlers[id(function)] = guarded if concerns is None else recorder.looked(handler, concerns)
        if recorder.selected.passing_on:
            self._look_for_projections()
        if recorder.selected.products:
            names = ["matmul", "bmm", "mm", "mv", "mul", "multiply"]
            for function in (
                getattr(space, name) for name in names for space in (torch, torch.Tensor) if hasattr(space, name)
            ):
                self._look_too(function, own.operands.look)

    def _look_for_projections(self) -> None:
        found = self._recorder.projections
        products = (torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm)
        looks = [(F.linear, found.linear), (torch.addmm, found.added_product), (torch.einsum, found.einsum)]
        for function, look in (*looks, *((product, found.product) for product in products)):
            self._look_too(function, look)

    def _look_too(self, function: Any, look: Handler) -> None:
        before = self.handlers.get(id(function))
        guarded = partial(self._handle, partial(self._recorder.guarded, look))
        self.handlers[id(function)] = partial(_both, before, guarded)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if id(func) in PRODUCTS and not torch.compiler.is_compiling():
            self._recorder.heap.before(product_bytes(func, args))
        out = func(*args, **kwargs)
        handler = self.handlers.get(id(func))
        if handler is not None:
            handler(args, kwargs, out)
        return out

    def _handle(self, handler: Handler, args: Any, kwargs: Any, out: Any) -> None:
        if not torch.compiler.is_compiling():
            handler(args, kwargs, out)


def _both(first: Handler | None, second: Handler, args: Any, kwargs: Any, out: Any) -> None:
    if first is not None:
        first(args, kwargs, out)
    second(args, kwargs, out)


def _all(looks: Sequence[Callable[[Attention], None]], attention: Attention) -> None:
    if attention.open_axes or attention.unclear:  # another call settles what it is, once the run has ended
        return
    for look in looks:
        look(attention)


def _begun(trace: Trace, emit: Emitter) -> Ahead | None:
    """What begins with the statistics of each attention, and with its map, where these are chosen."""
    if trace.chosen:
        QUANTITIES.load()  # they are known from then on
    wanted, maps = trace.chosen & STATISTICS.keys(), MAPS in trace.chosen
    begun = ahead(trace.look_at, wanted, emit if maps else None) if wanted or maps else None
    if begun is not None:
        trace.findings.put(begun)
    return begun


_COMPILED = (
    "{} is compiled with torch.compile, where attention cannot be seen; open the model without it "
    "(for example `model._orig_mod`)."
)


def _compiled(model: nn.Module) -> str | None:
    """The name of the first compiled part of a model, "model" for the whole."""
    for name, module in model.named_modules():
        whole = type(module).__name__ == "OptimizedModule" and hasattr(module, "_orig_mod")
        if whole or getattr(module, "_compiled_call_impl", None) is not None:
            return name or "model"
    return None
