"""Parts of torch that a model's code imports only while it runs, brought in before, so that what watches them is there.

`from torch.nn.attention.flex_attention import flex_attention`, or a first `torch.compile`, inside a forward: at the
first call nobody would have told torch to run uncompiled, nor looked at the function.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from torch import nn

FLEX = "torch.nn.attention.flex_attention"
LATE = {FLEX: frozenset({"flex_attention"}), "torch._dynamo": frozenset({"torch", "compile"})}
"""Modules of torch, each with the names of which code that imports them has all."""
OF_TORCH = ("torch.", "builtins")
_LOOKED: WeakSet[type] = WeakSet()
"""Classes whose code was looked at: a test of structure calls a model sixty times."""


def bring_in(model: nn.Module) -> None:
    """Import those that code of the model's classes, or of the files that they are in, names. What cannot be imported
    fails where the model imports it."""
    waiting = {module: names for module, names in LATE.items() if module not in sys.modules}
    if not waiting:
        return
    for code in _codes(model):
        named = {*code.co_names, *code.co_freevars}
        imported = {part for name in code.co_names for part in name.split(".")}  # import a.b.c has one name
        for module in [one for one, names in waiting.items() if names <= named | imported]:
            del waiting[module]
            with suppress(Exception):
                importlib.import_module(module)
        if not waiting:
            return


def _codes(model: nn.Module) -> Iterator[CodeType]:
    """The code of all functions of the files in which the model's own classes are."""
    classes = {base for module in model.modules() for base in type(module).__mro__}
    own = [one for one in classes - set(_LOOKED) if not f"{one.__module__}.".startswith(OF_TORCH)]
    _LOOKED.update(own)
    for holder in (*own, *{one.__module__: sys.modules.get(one.__module__) for one in own}.values()):
        for value in list(vars(holder).values()) if holder is not None else ():
            yield from _of(value)


def _of(value: Any) -> Iterator[CodeType]:
    """The code of a function or a class's methods, with that of the functions inside."""
    if isinstance(value, type):
        value = [one for one in vars(value).values() if isinstance(one, FunctionType)]
    for function in value if isinstance(value, list) else [value]:
        if isinstance(function, FunctionType):
            yield from _inside(function.__code__)


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _inside(one)
