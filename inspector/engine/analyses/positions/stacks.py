"""Tensors that are stacked and then summed over the axis of the stack: another way of adding them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

Given = list[tuple[Tensor, Tensor | None]]


@dataclass(frozen=True, slots=True)
class Stack:
    """What was stacked along which axis; `result` is gone with the tensor that was made."""

    result: weakref.ref[Tensor]
    parts: tuple[Tensor, ...]
    axis: int


@dataclass(slots=True)
class Stacks:
    """The stacks of a call that still exist, by the identity of their result."""

    known: dict[int, Stack] = field(default_factory=dict)

    def keep(self, made: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Remember the operands of `torch.stack` for as long as its result lives."""
        parts = tuple(args[0] if args else kwargs.get("tensors", ()))
        axis = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
        if not isinstance(made, Tensor) or not all(isinstance(one, Tensor) for one in parts):
            return
        name = id(made)
        gone = weakref.ref(made, lambda _: self.known.pop(name, None))
        self.known[name] = Stack(gone, parts, int(axis) % made.dim())

    def summed(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Given:
        """The operands of a stack whose sum or mean over its axis this is, each as it reaches the result; else none."""
        whole = args[0] if args else kwargs.get("input")
        found = self.known.get(id(whole))
        if found is None or found.result() is not whole or not isinstance(whole, Tensor):
            return []
        axis = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
        axes = (axis,) if isinstance(axis, int) else tuple(axis or ())
        if [one % whole.dim() for one in axes] != [found.axis]:
            return []
        share = len(found.parts) if name == "mean" else 1
        return [(one, one if share == 1 else one / share) for one in found.parts]
