"""Gradients that probes request before the backward pass: hooks on values and on nodes of autograd's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.hooks import RemovableHandle


class GradientRequest:
    """A value in the graph whose gradient is requested: a hook on it stores the gradient.

    The hook is in autograd's graph and refers to this object, which refers to the graph: only `let_go` frees them.
    """

    __slots__ = ("_handle", "edge", "gradient", "take")

    def __init__(self, value: Tensor, take: Callable[[Tensor | None], None]) -> None:
        self.take = take
        self.gradient: Tensor | None = None
        with torch._C.DisableTorchFunction():  # a probe may be recording every torch function
            self.edge: GradientEdge | None = get_gradient_edge(value)
            self._handle: RemovableHandle = value.register_hook(self._arrived)

    def _arrived(self, gradient: Tensor) -> None:
        """Called by autograd; it returns nothing, so the gradient is not changed."""
        with torch._C.DisableTorchFunction():
            self.gradient = gradient if self.gradient is None else self.gradient + gradient

    def let_go(self) -> None:
        """Remove the hook, and release the graph."""
        self._handle.remove()
        self.edge = None


class PartRequest:
    """One of the gradients that a node of autograd's graph sends on, which is requested: a hook on the node stores it.

    Its value has a GradientRequest of its own, which makes autograd go there.
    """

    __slots__ = ("_handle", "edge", "gradient", "take")

    def __init__(self, node: Any, number: int, take: Callable[[Tensor | None], None]) -> None:
        self.take = take
        self.gradient: Tensor | None = None
        self.edge: GradientEdge | None = None
        self._handle: RemovableHandle = node.register_hook(lambda sent, _given: self._arrived(sent[number]))

    def _arrived(self, gradient: Tensor | None) -> None:
        with torch._C.DisableTorchFunction():
            if gradient is not None:
                self.gradient = gradient if self.gradient is None else self.gradient + gradient

    def let_go(self) -> None:
        """Remove the hook."""
        self._handle.remove()
