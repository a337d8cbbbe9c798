"""What torch does for every model of a process: hooks of all modules, modes, precisions, and what its names stand for.

A model that changes it changes the numbers of the next one. What a call of a model leaves on is switched off behind it
(`process_state.py`); what a model chose for itself as it was made holds for its calls, and `altered` says that another
model needs another process. Hooks and modes of this package come and go while a model is called, and are left alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.utils._device import DeviceContext

_OWN = __name__.partition(".")[0] + "."
_TORCH = str(Path(torch.__file__).parent)
_DYNAMO = str(Path(_TORCH) / "_dynamo")
_DEVICES = ("cpu", "cuda")
_HOOKS = [name for name, value in vars(modules).items() if name.startswith("_global_") and isinstance(value, dict)]
_NUMERIC = (torch, nn, nn.functional, nn.init, torch.linalg, torch.fft, torch.special, torch.autograd, torch._VF)
_OTHERS = (np, np.linalg, np.fft, math, random)
_COMPUTING = frozenset({
    "CPU", "CUDA", "MPS", "XPU", "AutogradCPU", "AutogradCUDA", "AutogradMPS", "AutogradXPU", "Autograd", "AutocastCPU",
    "AutocastCUDA", "BackendSelect", "CompositeExplicitAutograd", "CompositeImplicitAutograd",
})  # fmt: skip
"""Dispatch keys of operations that compute numbers."""
_pop_function_mode = torch._C._pop_torch_function_stack
_push_function_mode = torch._C._push_on_torch_function_stack
_pop_kept_hooks = torch._C._autograd._pop_saved_tensors_default_hooks


def _is_own(made: Any) -> bool:
    return str(getattr(made, "__module__", "") or type(made).__module__).startswith(_OWN)


def hooks_of_all() -> list[dict[int, Any]]:
    """Hooks that every module calls, those of this package left out."""
    tables = (getattr(modules, name) for name in _HOOKS)
    return [{number: hook for number, hook in table.items() if not _is_own(hook)} for table in tables]


def set_hooks_of_all(before: list[dict[int, Any]]) -> None:
    """Take away what has come since, and put back what is gone."""
    for name, kept in zip(_HOOKS, before, strict=True):
        table = getattr(modules, name)
        for number in [number for number, hook in table.items() if number not in kept and not _is_own(hook)]:
            del table[number]
        table.update({number: hook for number, hook in kept.items() if number not in table})


def function_modes() -> list[Any]:
    """Modes that see each function of torch, without that of a device, which is a setting of its own."""
    count = torch._C._len_torch_function_stack()
    stack = [torch._C._get_function_stack_at(n) for n in range(count)]
    return [mode for mode in stack if not _is_own(mode) and not isinstance(mode, DeviceContext)]


def set_function_modes(before: list[Any]) -> None:
    """Take away what has come since."""
    _without(
        function_modes(), before, torch._C._len_torch_function_stack, _pop_function_mode, _push_function_mode
    )  # fmt: skip


def operation_modes() -> list[Any]:
    """Modes that see each operation."""
    count = torch._C._len_torch_dispatch_stack()
    stack = [torch._C._get_dispatch_stack_at(n) for n in range(count)]
    return [mode for mode in stack if not _is_own(mode)]


def set_operation_modes(before: list[Any]) -> None:
    """Take away what has come since."""
    _without(
        operation_modes(), before, torch._C._len_torch_dispatch_stack,
        lambda: torch._C._pop_torch_dispatch_stack(None), torch._C._push_on_torch_dispatch_stack,
    )  # fmt: skip


def _without(
    now: list[Any], before: list[Any], count: Callable[[], int], pop: Callable[[], Any], push: Callable[[Any], object]
) -> None:
    more = [mode for mode in now if not any(mode is one for one in before)]
    stack = [pop() for _ in range(count())]
    for mode in reversed(stack):
        if not any(mode is one for one in more):
            push(mode)


def kept_hooks() -> Any:
    """What packs tensors that are kept for gradients; None for nothing, and for what this package packs."""
    top = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return None if top is None or _is_own(top[0]) else tuple(top)


def set_kept_hooks(before: Any) -> None:
    """Take away what has come since."""
    for _ in range(1000):
        if (now := kept_hooks()) is None or now == before:
            return
        _pop_kept_hooks()


def precisions() -> list[Any]:
    """Of autocast, matrix products and numbers close to zero."""
    automatic = [(name, torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in _DEVICES]
    flushed = float(torch.tensor(1e-39, dtype=torch.float32, device="cpu").mul(1.0)) == 0.0
    return [automatic, torch.get_float32_matmul_precision(), flushed, torch._C._get_mkldnn_enabled()]


def set_precisions(before: list[Any]) -> None:
    """As they were."""
    automatic, products, flushed, library = before
    for name, on, dtype in automatic:
        torch.set_autocast_enabled(name, on)
        torch.set_autocast_dtype(name, dtype)
    torch.clear_autocast_cache()
    torch.set_float32_matmul_precision(products)
    torch.set_flush_denormal(flushed)
    torch._C._set_mkldnn_enabled(library)


STATES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "hooks of all modules": (hooks_of_all, set_hooks_of_all),
    "modes of torch's functions": (function_modes, set_function_modes),
    "modes of torch's operations": (operation_modes, set_operation_modes),
    "hooks of kept tensors": (kept_hooks, set_kept_hooks),
    "precisions": (precisions, set_precisions),
}
"""What it is → what reads it, and what sets it."""


def replaced_operations() -> frozenset[str]:
    """Operations of torch whose work Python does instead where numbers are computed. For shapes alone (Meta) and for
    batches of `vmap` (FuncTorchBatched) torch does that itself, as soon as they are needed."""
    known = getattr(torch.library, "_impls", ())
    return frozenset(name for name in known if name.startswith("aten/") and name.rpartition("/")[2] in _COMPUTING)


class Defined:
    """What the names of torch, numpy and math, and the methods of torch's modules, stand for now."""

    def __init__(self) -> None:
        self._states = {name: read() for name, (read, _) in STATES.items()}
        self._replaced = replaced_operations()
        self._tables = [(one, _names_of(one)) for one in _defining()]

    def altered(self) -> str:
        """What stands for something else by now, or is another; "" where all is as it was."""
        for name, (read, _) in STATES.items():
            if read() != self._states[name]:
                return name
        if more := replaced_operations() - self._replaced:
            return min(more)
        for made, before in self._tables:
            if name := _other_name(made, before):
                return f"{made.__name__}.{name}"
        return ""


def _other_name(made: Any, before: dict[str, Any]) -> str:
    """A name of a module or class that stands for something else than before; "" for none."""
    now = _names_of(made)
    for name, value in before.items():
        if callable(value) and not _is_same(now.get(name), value):
            return name
    new = now.keys() - before.keys()
    if made is torch._VF:  # it has no names of its own, and looks them up
        return min(new, default="")
    return next((name for name in sorted(new) if isinstance(made, type) and _hides(made, name)), "")


def _is_same(now: Any, before: Any) -> bool:
    """Whether it is what it was, or what `torch.compile` puts around it as it is imported and first used."""
    if now is before:
        return True
    written = getattr(getattr(now, "__code__", None), "co_filename", "")
    return written.startswith(_DYNAMO) or (getattr(now, "__wrapped__", None) is before and written.startswith(_TORCH))


def _hides(made: type, name: str) -> bool:
    """Whether a class that this one is derived from has the name too."""
    return any(name in vars(one) for one in made.__mro__[1:])


def _names_of(one: Any) -> dict[str, Any]:
    """Names of a module without those that Python gives to each; all of a class."""
    return {name: value for name, value in vars(one).items() if isinstance(one, type) or name[:2] != "__"}


def _defining() -> Iterable[Any]:
    yield from (*_NUMERIC, *_OTHERS, torch.Tensor)
    yield from dict.fromkeys(value for value in vars(nn).values() if isinstance(value, type))
