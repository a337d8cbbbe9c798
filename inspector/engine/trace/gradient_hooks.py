"""Hooks of the user's that change a gradient: what then flows is not the derivative of what was computed.

`h.register_hook(lambda g: g * 0.5)` scales or clips gradients between the steps, and so do backward hooks of modules.
Autograd's gradients have it; sums of products of Jacobians do not, so what is made of these is refused. A hook that
only looks changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

_SILENT: ContextVar[bool] = ContextVar("_SILENT", default=False)


@contextmanager
def without_hooks() -> Iterator[None]:
    """Inside, hooks that are watched are not called: a step is differentiated, nothing of the user's goes on."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def silent() -> bool:
    """Whether hooks are not called now."""
    return _SILENT.get()


class WatchedHook:
    """A hook of the user's in place of itself; `changed` once it returned, or wrote into, another gradient.

    It is in autograd's graph and refers to the tensor, which refers to the graph: only `let_go` frees them.
    """

    def __init__(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> None:
        self.tensor: Tensor | None = tensor
        self.hook, self.changed = hook, False

    def let_go(self) -> None:
        """Release the tensor."""
        self.tensor = None

    def __call__(self, gradient: Tensor) -> Any:
        """What the hook returns."""
        if silent():
            return None
        version = gradient._version
        found = self.hook(gradient)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            other = isinstance(found, Tensor) and not torch.equal(found, gradient)
            self.changed |= other or gradient._version != version
        return found
