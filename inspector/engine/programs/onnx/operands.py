"""What an operator of ONNX is given, and how it calls torch: at once on values, or as nodes of a graph of torch.fx."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.fx import Graph, Node

from inspector.engine.programs.onnx.protobuf import Attributes


class Untranslated(Exception):
    """An operator, or a form of it, that has no translation here; the reason is the message."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of an operator.

    Attributes:
        value: the tensor itself, or the node that makes it.
        known: the tensor, where it is the same in every run.
    """

    value: Any
    known: Tensor | None = None

    @property
    def number(self) -> Any:
        """A single known number as Python's, the value otherwise: `1 - x` has no tensor of its own for the 1."""
        if self.known is not None and self.known.numel() == 1 and self.known.dim() == 0:
            return self.known.item()
        return self.value


@dataclass(frozen=True, slots=True)
class Operator:
    """A node: its type, attributes, the version of its operator set, and how many results it has."""

    kind: str
    attributes: Attributes
    version: int
    outputs: int


class Calls(Protocol):
    """How torch is called."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a function of operands, values and numbers."""


def plain(value: Any) -> Any:
    """Operands as their values, in tuples and lists too."""
    if isinstance(value, Operand):
        return value.value
    if isinstance(value, (tuple, list)):
        return type(value)(plain(one) for one in value)
    return value


class Now:
    """Calls at once."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result."""
        return function(*plain(args), **{key: plain(one) for key, one in kwargs.items()})


class Later:
    """Calls as nodes of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """The node."""
        return self.graph.call_function(function, plain(args), {key: plain(one) for key, one in kwargs.items()})


def ints_of(value: Tensor) -> list[int]:
    """Whole numbers of a tensor, which an operator takes as shape or axes."""
    return [int(one) for one in value.reshape(-1).tolist()]


def ints(calls: Calls, operand: Operand | None) -> Any:
    """Whole numbers that an operator is given: a list, or the node that makes it; None where they are not given."""
    if operand is None:
        return None
    return ints_of(operand.known) if operand.known is not None else calls.call(ints_of, operand)


def known_ints(operand: Operand | None, what: str) -> list[int] | None:
    """Whole numbers that must not differ from run to run. Raises Untranslated."""
    if operand is None:
        return None
    if operand.known is None:
        raise Untranslated(f"its {what} are computed")
    return ints_of(operand.known)


def shape_of(value: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    """The sizes of a tensor as one, on the CPU."""
    return torch.tensor(list(value.shape)[start:end], dtype=torch.int64)
