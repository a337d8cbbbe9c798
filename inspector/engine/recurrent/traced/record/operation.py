"""One call of a torch function as it was recorded, with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torch import Tensor
from torch._ops import OpOverload

from inspector.engine.recurrent.traced.record.operator_traits import Kind, Operator, Traits, operator_of

Chain = tuple[tuple[FrameType, int], ...]
"""Frames of the user's code, outermost first, each with the offset of the instruction that it is at."""
Where = tuple[Chain, FrameType]
"""The callers, outermost first, and the innermost frame; its instruction is stored with each call."""
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any] | None, Any, Where, int]
"""Function, arguments, result, and where in the code; a plain tuple, because one is made for every operation."""


@dataclass(slots=True)
class Op:
    """One call of a torch function.

    Attributes:
        name: the function's bare name: "sigmoid", "__add__", "linear"; operator: the operator of that name.
        inputs, outputs: the tensors given (nested ones too) and returned, in order.
        in_place: True when it wrote into one of its inputs.
        owner: the `self` of the innermost call of the user's code, or None.
        random: torch's random state before the call, for dropout in training; else None.
        custom: True inside a torch.autograd.Function of the user's: its backward is differentiated, not this.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    operator: Operator
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    in_place: bool
    chain: Chain
    owner: Any
    random: Tensor | None = None
    custom: bool = False

    @property
    def traits(self) -> Traits:
        """The traits of its operator."""
        return self.operator.traits

    @property
    def target(self) -> Tensor:
        """What an operation in place wrote into."""
        out = self.kwargs.get("out")
        return out if isinstance(out, Tensor) else self.inputs[0]

    @property
    def replaces(self) -> bool:
        """It writes every entry of its first input anew: nothing of the old values is left."""
        return self.traits.name == "copy" and self.in_place

    def operands(self) -> list[tuple[int, Tensor]]:
        """(number, tensor) of every input tensor, nested ones under the number of their argument.

        Numbers are those of `Traits`: also where the function takes its arguments in reverse order, or where they
        are given by name (-1 for a name that the table does not have).
        """
        names = self.traits.operands
        named = ((names.index(name) if name in names else -1, value) for name, value in self.kwargs.items())
        turn = {0: 1, 1: 0} if self.operator.reflected else {}
        return [(turn.get(n, n), one) for n, value in (*enumerate(self.args), *named) for one in tensors((value,))]

    def output(self, tensor: Tensor) -> int:
        """The number of an output."""
        return next(n for n, out in enumerate(self.outputs) if out is tensor)


def op_of(call: Call, owner: Any, random: Tensor | None = None, *, quiet: bool = False) -> Op:
    """A call as an Op. `quiet`: autograd was off although it was on when the run began."""
    func, args, kwargs, out, (outer, frame), at = call
    kwargs = kwargs or {}
    inputs, outputs = given_to(call), results_of(out)
    name = name_of(func)
    operator = operator_of(name)
    same = any(one is given for one in outputs for given in inputs)
    idle = operator.traits.kind is Kind.DROPOUT and random is None  # in eval mode, also with inplace=True
    in_place = operator.traits.name == "setitem" or (same and not idle and _writes(operator, args, kwargs))
    # Without gradients inside and yet with one afterwards. (Asking for grad_fn would make a Python object of every
    # node, and freeing a long chain of those overflows the stack.)
    custom = quiet and any(one.requires_grad for one in outputs)
    return Op(
        func, args, kwargs, name, operator, inputs, outputs, in_place, (*outer, (frame, at)), owner, random, custom
    )


def given_to(call: Call) -> tuple[Tensor, ...]:
    """The input tensors of a call, nested ones too, in order."""
    return tensors(call[1]) if not call[2] else tensors((*call[1], *call[2].values()))


def results_of(out: Any) -> tuple[Tensor, ...]:
    """The tensors in what a function returned."""
    return (out,) if isinstance(out, Tensor) else tensors(out) if isinstance(out, (tuple, list)) else ()


def _writes(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function that returned its input wrote into it (dropout in eval mode, contiguous do not).

    Where a function takes `inplace` by position, it is the last argument. Counter-example: an unknown function with a
    last argument True that returned its input unchanged: its iterations have no twins then, and its state is rejected
    as overwritten.
    """
    asked = bool(kwargs.get("inplace")) or (len(args) > 1 and args[-1] is True and not operator.traits.rearranges)
    return operator.in_place or asked or "out" in kwargs


def name_of(func: Any) -> str:
    """A function's bare name; for a property's getter (`x.T`) the property's, for an overload the operator's (`tanh` of
    `aten.tanh.default`)."""
    if isinstance(func, OpOverload):
        return str(func._opname)
    name = str(getattr(func, "__name__", func))
    return str(getattr(getattr(func, "__self__", None), "__name__", name)) if name == "__get__" else name


def tensors(values: Any) -> tuple[Tensor, ...]:
    """Tensors in nested tuples, lists and dicts, in order."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found.extend(tensors(value))
        elif isinstance(value, dict):
            found.extend(tensors(value.values()))
    return tuple(found)
