"""One call of a torch function as it was recorded, and what it was given and gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

DROPOUTS = (F.dropout, torch.dropout, F.alpha_dropout, F.feature_alpha_dropout)

FORGOTTEN = frozenset(
    [
        "rand_like",
        "randn_like",
        "randint_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "bernoulli",
        "multinomial",
        "argmax",
        "argmin",
    ]
)
"""Functions whose result does not depend on the values given, or not differentiably: it is taken as it was."""

Chain = tuple[tuple[FrameType, int], ...]
"""Frames of the user's code, outermost first, each with the offset of the instruction that it is at."""
Where = tuple[Chain, FrameType]
"""The callers, outermost first, and the innermost frame; which instruction that is at is kept with each call."""
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any] | None, Any, Where, int]
"""Function, arguments, result, and where in the code; a plain tuple, because one is made for every operation."""


@dataclass(slots=True)
class Op:
    """One call of a torch function.

    Attributes:
        name: the function's bare name: "sigmoid", "__add__", "linear".
        inputs, outputs: the tensors given (nested ones too) and returned, in order.
        in_place: True when it wrote into something that it was given.
        owner: the `self` of the innermost call of the user's code, or None.
        random: torch's random state before the call, of dropout in training; else None.
        custom: True inside a torch.autograd.Function of the user's: what is differentiated is its backward, not this.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    in_place: bool
    chain: Chain
    owner: Any
    random: Tensor | None = None
    custom: bool = False


def op_of(call: Call, owner: Any, random: Tensor | None = None, *, quiet: bool = False) -> Op:
    """A call, looked at. `quiet`: autograd was off although it was on when the run began."""
    func, args, kwargs, out, (outer, frame), at = call
    kwargs = kwargs or {}
    inputs, outputs = given_to(call), results_of(out)
    name = name_of(func)
    same = any(one is given for one in outputs for given in inputs)
    in_place = name == "__setitem__" or (same and _writes(name, args, kwargs))
    # Without gradients inside and yet with one afterwards. (Asking for grad_fn would make a Python object of every
    # node, and freeing a long chain of those overflows the stack.)
    custom = quiet and any(one.requires_grad for one in outputs)
    return Op(func, args, kwargs, name, inputs, outputs, in_place, (*outer, (frame, at)), owner, random, custom)


def given_to(call: Call) -> tuple[Tensor, ...]:
    """The tensors that a call was given, nested ones too, in order."""
    return tensors(call[1]) if not call[2] else tensors((*call[1], *call[2].values()))


def results_of(out: Any) -> tuple[Tensor, ...]:
    """The tensors in what a function returned."""
    return (out,) if isinstance(out, Tensor) else tensors(out) if isinstance(out, (tuple, list)) else ()


def _writes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function that returned what it was given wrote into it (dropout in eval mode, contiguous do not)."""
    named = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
    return named or bool(kwargs.get("inplace")) or "out" in kwargs or (len(args) > 1 and args[-1] is True)


def name_of(func: Any) -> str:
    """A function's bare name; of a property's getter (`x.T`) the property's."""
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
