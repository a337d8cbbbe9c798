"""Probes around a call of a model that other code makes: attached before, detached after, even where the call raises.

Observing owns neither the forward nor the backward pass: no seed is set, nothing is collected, no gradient is computed
that the caller does not compute. Gradients of inner values come by hooks, from the caller's own backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from inspector.capture import CaptureError
from inspector.engine.analyses.attention.batch_axes import refuse_open
from inspector.engine.analyses.attention.masks_again import refuse_unclear
from inspector.engine.contracts import Probe
from inspector.engine.errors import CancelledError
from inspector.engine.model.subject import to_device
from inspector.engine.model.uncompiled import original, uncompiled
from inspector.engine.pipeline.analyse import refuse_failed
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.hooked_gradients import refuse_changed
from inspector.engine.trace.missing_gradients import say_why
from inspector.engine.trace.target_steps import settle
from inspector.engine.trace.trace import Trace
from inspector.records import Log

MOST_NAMES = 4
UNCOMPILED = (
    "What torch.compile compiled ({}) runs uncompiled here, since compiled code cannot be watched: the same function, "
    "up to rounding."
)
SCRIPTED = (
    "{} is TorchScript (torch.jit.script or torch.jit.trace), which no hook can watch, so nothing inside it is shown; "
    "open the Python module that it was made from."
)


class Observation:
    """Probes on a model, as a context manager; `finish` afterwards puts what they recorded into the trace.

    `with observe(model, trace, emit, probes): output = model(x); loss(output).backward()`
    """

    def __init__(self, model: nn.Module, trace: Trace, emit: Emitter, probes: Sequence[Probe]) -> None:
        self.model, self.trace, self.emit, self.probes = original(model), trace, emit, probes
        self.output: Any = None
        """What the model returned, where the whole model was called."""
        self.between: Callable[[], None] = self._refuse_unsettled
        """Called when probes have put what they recorded into the trace, before its axes are laid out."""
        self._root: RemovableHandle | None = None
        self._uncompiled = uncompiled(model)
        self._hooks = trace.user_hooks.watched(self.model)

    def _refuse_unsettled(self) -> None:
        refuse_open(self.trace, self.emit)
        refuse_unclear(self.trace, self.emit)

    def __enter__(self) -> Observation:
        names = self._uncompiled.__enter__()
        self._hooks.__enter__()
        if names:
            self.emit.sink.write(Log(UNCOMPILED.format(", ".join(names[:MOST_NAMES])), "info", "engine"))
        try:
            for probe in self.probes:
                probe.attach(self.model, self.trace, self.emit)
            self._refuse_scripted()
            if not isinstance(self.model, torch.jit.ScriptModule):  # these take no hooks
                self._root = self.model.register_forward_hook(lambda _model, _given, output: self._keep(output))
        except BaseException:
            self._detach()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self._detach()
        if fault is not None and not isinstance(fault, Exception):
            self.trace.forget_requests()  # `finish` will not be called

    def _refuse_scripted(self) -> None:
        """Name the outermost parts that are TorchScript."""
        found = [name for name, module in self.model.named_modules() if isinstance(module, torch.jit.ScriptModule)]
        for name in found:
            if not any(name.startswith(f"{outer}.".lstrip(".")) for outer in found if outer != name):
                self.emit.refuse(f"{name or 'model'}:h", SCRIPTED.format(name or "The model"))

    def _keep(self, output: Any) -> None:
        self.output = output
        self.returned()

    def returned(self) -> None:
        """The model has returned and the backward pass has not begun: probes may still ask for gradients.

        A forward hook calls it when the whole model was called; code that calls parts of the model has to call it.
        """
        looks, self.trace.after_forward = self.trace.after_forward, []
        self.trace.returned = self.output
        for look in looks:
            look()
        self.trace.returned = None

    def _detach(self) -> None:
        if self._root is not None:
            self._root.remove()
            self._root = None
        for probe in self.probes:
            probe.detach()
        self._hooks.__exit__(None, None, None)
        self._uncompiled.__exit__(None, None, None)

    def finish(self, early: Callable[[], None] = lambda: None) -> None:
        """Distribute the gradients that were computed, and put what the probes recorded into the trace.

        `early` is called once states are known, before the gradients inside fused modules are worked out.
        """
        self.trace.hand_out_gradients()
        for probe in self.probes:
            self._finish(probe)
        self.between()
        settle(self.trace, self.emit)
        try:
            self._rest(early)
        finally:
            self.trace.forget_requests()

    def _rest(self, early: Callable[[], None]) -> None:
        self.trace.batch = to_device(self.trace.batch, "cpu")  # read by quantities; `Subject.placed` puts it back
        early()
        self.trace.after_the_states()
        self.trace.share_parameter_gradients()
        refuse_changed(self.trace, self.emit)
        say_why(self.trace, self.emit)

    def _finish(self, probe: Probe) -> None:
        try:
            probe.finish(self.trace, self.emit)
        except (CancelledError, CaptureError):
            raise
        except Exception as fault:  # noqa: BLE001 - a failure of one probe must not affect the others
            name = type(probe).__name__
            refuse_failed(f"run:{name.lower()}", f"Reading the recording of the probe {name}", fault, self.emit)


def observe(model: nn.Module, trace: Trace, emit: Emitter, probes: Sequence[Probe]) -> Observation:
    """Attach probes around a call of `model` that the caller makes; see `Observation`."""
    return Observation(model, trace, emit, probes)
