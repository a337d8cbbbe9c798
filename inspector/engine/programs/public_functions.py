"""An operator of aten as the function of torch's that a user would have called.

What watches a run knows torch's functions by their names (softmax, matmul, sigmoid), not the operators behind them.
A function is taken for an operator only where it was seen to give the very same numbers on the values of an example.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function, its arguments, and those by name."""
END = (1 << 63) - 1
"""The end of a slice that has none."""
PLACES: tuple[Any, ...] = (torch, F, torch._C._nn, Tensor)


def public_calls(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], shown: Tensor | None) -> Iterator[Call]:
    """Calls of torch's functions that may compute what `op(*args, **kwargs)` does. `shown`: its first argument."""
    yield from calls_of(str(op._schema.name).partition("::")[2], args, kwargs, shown)


def calls_of(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], shown: Tensor | None) -> Iterator[Call]:
    """The same of an operator by its name."""
    written = SPECIAL.get(name)
    found = written(args, dict(kwargs), shown) if written is not None else None
    if found is not None:
        yield found
    if name.startswith("_"):
        return
    for place in PLACES:
        function = getattr(place, name, None)
        if callable(function):
            yield function, args, dict(kwargs)


def _slice(args: tuple[Any, ...], kwargs: dict[str, Any], shown: Tensor | None) -> Call | None:
    """x[:, a:b]"""
    if kwargs:
        return None
    given: list[Any] = [*args, *(None, 0, None, None, 1)[len(args) :]]
    x, start, end, step = given[0], *given[2:]
    dim = int(given[1])
    if dim < 0:
        if shown is None:
            return None
        dim += shown.dim()
    end = None if isinstance(end, int) and end >= END else end
    start = None if isinstance(start, int) and start == 0 else start
    own = slice(start, end, None if step == 1 else step)
    return operator.getitem, (x, (*(slice(None),) * dim, own)), {}


def _softmax(args: tuple[Any, ...], kwargs: dict[str, Any], _shown: Tensor | None) -> Call | None:
    return None if kwargs or args[2] else (torch.softmax, args[:2], {})


def _log_softmax(args: tuple[Any, ...], kwargs: dict[str, Any], _shown: Tensor | None) -> Call | None:
    return None if kwargs or args[2] else (torch.log_softmax, args[:2], {})


def _view(args: tuple[Any, ...], kwargs: dict[str, Any], _shown: Tensor | None) -> Call | None:
    return None if kwargs else (torch.reshape, args, {})


def _copy(args: tuple[Any, ...], kwargs: dict[str, Any], _shown: Tensor | None) -> Call | None:
    said = {key: value for key, value in kwargs.items() if key in ("dtype",) and value is not None}
    return (Tensor.to, args, said) if said else (torch.clone, args, {})


def _embedding(args: tuple[Any, ...], _kwargs: dict[str, Any], _shown: Tensor | None) -> Call | None:
    weight, ids = args[:2]
    return F.embedding, (ids, weight), {}


SPECIAL: dict[str, Callable[[tuple[Any, ...], dict[str, Any], Tensor | None], Call | None]] = {
    "slice": _slice, "_softmax": _softmax, "_log_softmax": _log_softmax, "_unsafe_view": _view, "_to_copy": _copy,
    "embedding": _embedding,
}  # fmt: skip
"""Operators whose function has another name, or other arguments."""


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal bit for bit, NaN included."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num()) and bool(
            (a.isnan() == b.isnan()).all()
        )  # fmt: skip
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)
