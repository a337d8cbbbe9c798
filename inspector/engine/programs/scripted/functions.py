"""What TorchScript's code calls `torch` and `ops`: its operators, by torch's public functions where these are the same.

The frames of this file pass calls on: an operation belongs to the line of TorchScript that made it (`recorder`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.programs.fused_layers import KINDS, Options, layer_of, results
from inspector.engine.programs.public_functions import calls_of, same

SCALAR: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "floordiv": operator.floordiv, "remainder": operator.mod, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "pow": operator.pow, "__and__": operator.and_,
    "__or__": operator.or_, "__xor__": operator.xor, "abs": abs, "min": min, "max": max, "sqrt": lambda x: x**0.5,
}  # fmt: skip
"""Operators that Python's numbers, texts and lists have as well."""
PYTHON: dict[str, Callable[..., Any]] = {
    "__not__": operator.not_, "__is__": operator.is_, "__isnot__": operator.is_not, "__contains__": operator.contains,
    "len": len, "append": lambda own, one: own.append(one), "extend": lambda own, more: own.extend(more),
    "insert": lambda own, n, one: own.insert(n, one), "pop": lambda own, *n: own.pop(*n),
    "clear": lambda own: own.clear(),
    "format": lambda text, *values: text.format(*values), "str": str, "ord": ord, "keys": lambda own: list(own.keys()),
    "values": lambda own: list(own.values()), "items": lambda own: list(own.items()), "list": list, "sorted": sorted,
    "Int": int, "Float": float, "Bool": bool, "IntImplicit": int, "FloatImplicit": float,
    "ScalarImplicit": lambda x: x.item(), "device": torch.device, "dim": lambda x: x.dim(),
    "numel": lambda x: x.numel(),
    "__range_length": lambda a, b, step: len(range(a, b, step)), "__derive_index": lambda n, a, step: a + n * step,
    "warn": lambda *_, **__: None, "is_floating_point": lambda x: x.is_floating_point(),
    "get": lambda own, *k: own.get(*k),
    "_set_item": operator.setitem, "__getitem__": operator.getitem, "is_grad_enabled": torch.is_grad_enabled,
    "is_autocast_enabled": lambda: False, "is_autocast_cpu_enabled": lambda: False, "dict": dict,
    "size": lambda x, *n: x.size(*n) if n else list(x.size()),
}  # fmt: skip


RANDOM = ("rand", "bernoulli", "normal", "multinomial", "uniform")
"""Beginnings of names of operators that draw: two calls of them are not compared."""


class Torch:
    """The operators of one program."""

    def __init__(self) -> None:
        self.layers: dict[tuple[int, ...], nn.RNNBase | None] = {}
        """Layers that stand for fused operators, by the identities of their weights; None where none does."""
        self.owners: dict[int, nn.Module] = {}
        """The module that holds a parameter, by its identity."""
        self.opaque: set[str] = set()
        """Fused operators without a layer."""
        self.rows: int | None = None
        """Of the first table that ids were looked up in."""
        self.growing = True
        """Whether layers may be made: until probes are attached."""
        self._chosen: dict[Any, int] = {}
        self._made: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Any:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._function(name)
        return made

    def _function(self, name: str) -> Callable[..., Any]:
        if name in KINDS:
            return lambda *args: self.fused(name, *args)
        if name in ("inf", "nan"):
            return float(name)  # type: ignore[return-value]
        plain = PYTHON.get(name)
        if plain is not None:
            return plain

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "slice" and not isinstance(args[0], Tensor):
                return args[0][slice(*args[1:])]
            if name == "copy" and not isinstance(args[0], Tensor):
                return args[0].copy()
            if not any(isinstance(one, Tensor) for one in args) and name in SCALAR:
                return SCALAR[name](*args)
            return self.operator(name, args, kwargs)

        return call

    def operator(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """An operator of aten: by the function that was found to be the same, at its first call of this form."""
        form = (name, tuple(map(_form, args)), tuple(kwargs))
        number = self._chosen.get(form)
        if number is not None and number >= 0:
            function, own, named = _nth(name, args, kwargs, number)
            return function(*own, **named)
        op = getattr(torch.ops.aten, name)
        if name == "embedding" and self.rows is None:
            self.rows = len(args[0])
        if number is not None or name.endswith("_") or name.startswith(RANDOM):
            return op(*args, **kwargs)
        with torch._C.DisableTorchFunction():  # nothing that watches a run sees these calls
            self._chosen[form] = _same_as(op, name, args, kwargs)
        return self.operator(name, args, kwargs)

    def fused(self, name: str, *args: Any) -> Any:
        """A fused recurrent operator, by its layer."""
        op = getattr(torch.ops.aten, name)
        if len(args) != 9 or (isinstance(args[1], Tensor) and args[1].dim() == 1):
            self.opaque.add(name)
            return op(*args)
        x, state, weights, *rest = args
        key = tuple(map(id, weights))
        if key not in self.layers and self.growing:
            own = all(isinstance(one, nn.Parameter) for one in weights)
            layer = layer_of(name, weights, Options(*rest)) if own else None
            owner = self.owners.get(id(weights[0])) if weights else None
            if layer is not None and owner is not None and not hasattr(owner, name):
                owner.add_module(name, layer)
            else:
                layer = None
            self.layers[key] = layer
        layer = self.layers.get(key)
        if layer is None or Options(*rest).drops:
            self.opaque.add(name)
            return op(*args)
        return results(layer(x, tuple(state) if name == "lstm" else state))


def _form(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.dtype, value.dim()
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(_form(one) for one in value[:3]))
    return type(value).__name__


def _same_as(op: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The number of the function that gives what an operator does; −1 where none does."""
    out = op(*args, **kwargs)
    for n in range(9):
        found = _nth(name, args, kwargs, n)
        if found is None:
            break
        function, own, named = found
        try:
            if same(function(*own, **named), out):
                return n
        except Exception:  # noqa: BLE001 - a function of that name that takes other arguments
            continue
    return -1


def _nth(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], number: int) -> Any:
    shown = args[0] if args and isinstance(args[0], Tensor) else None
    for n, one in enumerate(calls_of(name, args, kwargs, shown)):
        if n == number:
            return one
    return None


def raised(text: str, kind: str = "") -> None:
    """What TorchScript raises."""
    raise RuntimeError(f"{kind.rpartition('.')[2]}: {text}" if kind else text)


def ops(own: Torch) -> Any:
    """What the code calls `ops`: operators by their namespace."""
    prim = SimpleNamespace(
        RaiseException=raised, dtype=lambda x: x.dtype, device=lambda x: x.device, layout=lambda x: x.layout,
        is_cuda=lambda x: x.is_cuda, requires_grad=lambda x: x.requires_grad, data=lambda x: x.data,
        shape=lambda x: list(x.shape),
        NumToTensor=torch.tensor, unchecked_unwrap_optional=lambda x: x, min=min, max=max, abs=abs,
        type=lambda x: x.type, is_nested=lambda x: x.is_nested, TupleIndex=operator.getitem,
        itemsize=lambda x: x.itemsize,
        isinstance=lambda *_: True, is_quantized=lambda x: x.is_quantized, tolist=lambda x, *_: x.tolist(),
    )  # fmt: skip
    return _Spaces(own, prim)


class _Spaces:
    def __init__(self, own: Torch, prim: Any) -> None:
        self.prim, self.aten = prim, own

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.ops, name)
