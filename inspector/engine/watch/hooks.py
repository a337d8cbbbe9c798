"""Hooks on modules, tensors and optimizers that pass calls on to a watcher, and nothing from copies or compiled code.

Hooks are copied and pickled with the model that they are on (copies of averaged weights, checkpoints of whole
modules): a copy passes nothing on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch

Handler = Callable[..., None]


class Passing:
    """A hook that calls a guarded method of the watcher. It returns nothing, whatever that does."""

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler = handler

    def __call__(self, *arguments: Any) -> None:
        if torch.compiler.is_compiling() or self.handler is None:  # in this order: nothing is guarded in compiled code
            return
        self.handler(*arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
