"""Hooks between the user's program and the watcher's core: attached once, removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from inspector.engine.watch.backward_calls import Scaled, leave, listen
from inspector.engine.watch.called import called
from inspector.engine.watch.core import Core
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.optimizers.new_optimizers import NewOptimizers


class Attachment:
    """The hooks of one watcher; passes everything to `core` under its guard."""

    def __init__(self, core: Core, model: nn.Module) -> None:
        self.core = core
        self._handles: list[RemovableHandle] = []
        self._steps: list[RemovableHandle] = []
        self._outermost: nn.Module | None = None
        listen(self)
        with suppress(RuntimeError):  # a ScriptModule takes no such hooks
            before, after = Passing(self._forward_begins), Passing(self._forward_ended)
            for part in called(model):
                self._handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
                self._handles.append(part.register_forward_hook(after, with_kwargs=True, always_call=True))

    def _forward_begins(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Of calls inside each other the outermost counts."""
        if self._outermost in (None, module):
            self._outermost = module
            self.core.guarded(self.core.forward_begins, module, args, kwargs)

    def _forward_ended(self, module: nn.Module, args: Any, *rest: Any) -> None:
        if self._outermost in (None, module):
            self._outermost = None
            self.core.guarded(self.core.forward_ended, module, _output(rest))

    def optimizers(self, optimizers: Sequence[Optimizer]) -> None:
        """Watch the steps of some optimizers."""
        core = self.core
        before = Passing(lambda *step: core.guarded(core.step_begins, *step))
        after = Passing(core.after_step)
        for optimizer in optimizers:
            self._steps.append(optimizer.register_step_pre_hook(before))
            self._steps.append(optimizer.register_step_post_hook(after))

    def any_optimizer(self, found: Any) -> None:
        """Tell `found` (optimizer) of the step of any optimizer of the process, under the guard."""
        core = self.core
        hook = Passing(lambda optimizer, *_: core.guarded(found, optimizer))
        self._steps.append(register_optimizer_step_pre_hook(hook))

    def new_optimizers(self, told: NewOptimizers, follow: Callable[[Optimizer, Any, Any], None]) -> None:
        """Tell of the steps of all optimizers; `follow` is called when the first step of one that is new has ended."""
        core = self.core
        before = Passing(lambda optimizer, *_: core.guarded(told.begins, optimizer))
        self._steps.append(register_optimizer_step_pre_hook(before))

        def ended(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            core.guarded(told.ended, optimizer)
            if told.found_one():
                follow(optimizer, args, kwargs)

        self._steps.append(register_optimizer_step_post_hook(Passing(ended)))

    def backward_begins(self, roots: tuple[Tensor, ...]) -> None:
        """See backward_calls.Listener."""
        self.core.guarded(self.core.backward_begins, roots)

    def backward_ended(self, roots: tuple[Tensor, ...], scaled: Scaled | None) -> None:
        """See backward_calls.Listener."""
        self.core.guarded(self.core.backward_ended, roots, scaled)

    def backward_failed(self, roots: tuple[Tensor, ...], fault: Exception) -> None:
        """See backward_calls.Listener."""
        self.core.guarded(self.core.backward_failed, roots, fault)

    def remove(self) -> None:
        """Remove all hooks. Those of optimizers stay, and do nothing, while a step is being made (see below), and while
        another process waits for this one."""
        self.remove_from_model()
        for handle in () if self.core.ranks.bound or inside_a_step() else self._steps:
            handle.remove()

    def remove_from_model(self) -> None:
        """Remove those that may be removed at any moment.

        An optimizer goes through its hooks while they are called, and fails where one is removed then: those stay, do
        nothing, and go with the watcher.
        """
        leave(self)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _output(rest: tuple[Any, ...]) -> Any:
    """The result among what a forward hook gets: torch leaves the keyword arguments out where the module raised."""
    return rest[-1] if len(rest) == 2 else None


def inside_a_step() -> bool:
    """Whether a step of an optimizer is on the stack: somebody closes the watcher from a hook."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "wrapper" and frame.f_globals.get("__name__") == "torch.optim.optimizer":
            return True
        frame = frame.f_back
    return False
