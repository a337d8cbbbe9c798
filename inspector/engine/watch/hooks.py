"""Hooks on modules, tensors and optimizers that pass calls on to a watcher, and nothing from copies, compiled or traced
code.

Hooks are copied and pickled with the model that they are on (copies of averaged weights, checkpoints of whole
modules): a copy passes nothing on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch

from inspector.engine.hooks.isolation import in_own_run

Handler = Callable[..., None]
NO_SCRIPT = (
    "torch.jit.script cannot compile a model while inspector.watch has hooks on it, nor a copy of it; script the model "
    "before it is watched, or end watching with watcher.close() first."
)
_transform = torch._C._functorch.peek_interpreter_stack
"""The innermost transform of torch.func that is at work; None outside."""


class Passing:
    """A hook that calls a guarded method of the watcher. It returns nothing, whatever that does."""

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler = handler

    def __call__(self, *arguments: Any) -> None:
        if torch.compiler.is_compiling() or self.handler is None:  # in this order: nothing is guarded in compiled code
            return
        if in_own_run():
            return  # inspector.run in the middle of a watched loop is no part of it
        if torch._C._get_tracing_state() is not None or _transform() is not None:
            return  # what is measured would become a part of the trace
        self.handler(*arguments)

    @property
    def __name__(self) -> str:
        """torch.jit.script asks for it, and can compile no hook that is not written in TorchScript."""
        raise AttributeError(NO_SCRIPT)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
