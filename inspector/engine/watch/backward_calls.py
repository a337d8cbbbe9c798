"""Where backward begins and ends, and which loss it begins at, seen without changing either.

`Tensor.backward` calls `torch.autograd.backward` by that name at every call, so one function in its place sees all
backward passes of the process; it calls torch's own with the same arguments. The same is done with
`GradScaler.scale`, which tells the loss before it was scaled. Both are put back with the last listener. A backward
pass that a user makes otherwise (`torch.autograd.grad`, a name imported before) is not seen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.amp.grad_scaler import GradScaler
from torch.utils.weak import WeakTensorKeyDictionary

from inspector.engine.hooks.module_stack import in_backward


@dataclass(frozen=True, slots=True)
class Scaled:
    """A loss before a GradScaler multiplied it, and the factor on the gradients."""

    loss: Tensor
    factor: Tensor


class Listener(Protocol):
    """Told of backward passes. Neither method raises."""

    def backward_begins(self, roots: tuple[Tensor, ...]) -> None:
        """A backward pass begins at `roots`; not told of one inside another."""

    def backward_ended(self, roots: tuple[Tensor, ...], scaled: Scaled | None) -> None:
        """It ended; `roots` are what it was called on, `scaled` where a GradScaler made the first of them."""

    def backward_failed(self, roots: tuple[Tensor, ...], fault: Exception) -> None:
        """It raised, which goes on to the user's program."""


_listeners: list[Listener] = []
_originals: dict[str, Callable[..., Any]] = {}
_scaled: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def listen(listener: Listener) -> None:
    """Tell a listener of every backward pass from now on."""
    if not _listeners:
        _install()
    _listeners.append(listener)


def leave(listener: Listener) -> None:
    """Tell it no more."""
    if listener in _listeners:
        _listeners.remove(listener)
    if not _listeners:
        _remove()


def _install() -> None:
    backward, scale = torch.autograd.backward, GradScaler.scale
    _originals.update(backward=backward, scale=scale)

    @functools.wraps(backward)
    def seen_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if not _listeners or in_backward():  # checkpointing calls it inside a backward pass
            return backward(tensors, *args, **kwargs)
        roots = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors) if isinstance(tensors, Sequence) else ()
        told: list[Listener] = []
        while (following := next((one for one in _listeners if one not in told), None)) is not None:
            told.append(following)
            following.backward_begins(roots)  # which may add a listener
        try:
            result = backward(tensors, *args, **kwargs)
        except Exception as fault:
            for one in told:
                one.backward_failed(roots, fault)
            raise
        found = _scaled.get(roots[0]) if roots and isinstance(roots[0], Tensor) else None
        for one in told:
            one.backward_ended(roots, found)
        return result

    @functools.wraps(scale)
    def seen_scale(self: GradScaler, outputs: Any) -> Any:
        made = scale(self, outputs)
        if _listeners and isinstance(outputs, Tensor) and made is not outputs and self._scale is not None:
            _scaled[made] = Scaled(outputs.detach(), self._scale)
        return made

    seen: Any = _disable_dynamo(seen_backward)  # a compiled training step leaves its graph at backward anyway
    _originals.update(seen_backward=seen, seen_scale=seen_scale)
    torch.autograd.backward = seen
    GradScaler.scale = seen_scale  # type: ignore[method-assign]


def _remove() -> None:
    """Put torch's own functions back, unless somebody else has put theirs in the place meanwhile."""
    if torch.autograd.backward is _originals.get("seen_backward"):
        torch.autograd.backward = _originals["backward"]
    if GradScaler.scale is _originals.get("seen_scale"):
        GradScaler.scale = _originals["scale"]  # type: ignore[method-assign]
    _originals.clear()
    _scaled.clear()
