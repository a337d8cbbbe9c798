"""Hooks of the user's that change a gradient: what then flows is not the derivative of what was computed.

`h.register_hook(lambda g: g * 0.5)` scales or clips gradients between the steps. Autograd's gradients have it; sums of
products of Jacobians do not, so what is made of these is refused. A hook that only looks changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.missing_gradients import SPLIT
from inspector.engine.trace.trace import Recurrence, Trace

HOOKED = (
    "A hook on a tensor (register_hook) changed the gradient within the steps of {}, so the gradient is not split by "
    "the step of the loss: products of the steps' derivatives do not have that change."
)


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
        version = gradient._version
        found = self.hook(gradient)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            other = isinstance(found, Tensor) and not torch.equal(found, gradient)
            self.changed |= other or gradient._version != version
        return found


def refuse_items(recurrence: Recurrence, emit: Emitter) -> None:
    """Leave the gradients at the states, which are autograd's, and refuse what would be split by the step of the
    loss."""
    recurrence.arriving = recurrence.ran = recurrence.inside = None
    for signal in SPLIT:
        emit.refuse(f"{recurrence.place}:{signal}", HOOKED.format(recurrence.place))


def refuse_changed(trace: Trace, emit: Emitter) -> None:
    """Drop the gradients of calls of modules whose state may be a tensor whose gradient a hook changed.

    A tensor as wide as a part of the state may be one. Counter-example: a hook on another value of that width, through
    which no state's gradient flows; the gradients are then refused although they are right.
    """
    changed = [one.tensor for one in trace.hooks if one.changed]
    widths = {tensor.shape[-1] for tensor in changed if tensor is not None and tensor.dim()}
    for recurrence in trace.recurrences if widths else ():
        parts = recurrence.cell.parts.values()
        if type(recurrence) is Recurrence and any(part.stop - part.start in widths for part in parts):
            recurrence.delta = None
            refuse_items(recurrence, emit)
            emit.refuse(f"{recurrence.place}:gradient", HOOKED.format(recurrence.place))
