"""Which module is being called: a stack maintained by hooks that no module can see.

The hooks are torch's global ones: a hook on a single module would turn off the fused path of
nn.TransformerEncoderLayer, be copied with the model, and be visible to the user.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

ROOT = "model"
"""Place of operations in the model itself, outside of every submodule."""

CALL = nn.Module._call_impl.__code__
Before = Callable[[nn.Module], None]
After = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], None]


class ModuleStack:
    """The modules being called, outermost first; `entered` and `left` are called for each.

    `left` gets the result None when the module raised. Calls inside a backward pass (checkpointing runs parts of
    the model again there) and calls of other threads are not seen. Neither function may raise.
    """

    def __init__(self, model: nn.Module, entered: Before, left: After) -> None:
        self._names = {id(module): name or ROOT for name, module in model.named_modules()}
        self._entered = entered
        self._left = left
        self._thread = threading.get_ident()
        self.modules: list[nn.Module] = []
        self._handles = [
            torch_module.register_module_forward_pre_hook(self._before),
            torch_module.register_module_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]

    def close(self) -> None:
        """Remove the hooks, with the entry that torch 2.13 forgets: `torch.compile` would warn of it afterwards."""
        forgotten = getattr(torch_module, "_global_forward_hooks_with_kwargs", {})
        for handle in self._handles:
            handle.remove()
            forgotten.pop(handle.id, None)
        self._handles.clear()
        self.modules.clear()

    def place(self) -> tuple[str, str]:
        """(qualified name, class name) of the innermost module that belongs to the model."""
        for module in reversed(self.modules):
            if id(module) in self._names:
                return self._names[id(module)], type(module).__name__
        return ROOT, ""

    def name(self, module: nn.Module) -> str:
        """The qualified name of a module; of one outside the model, that of the innermost around it."""
        return self._names.get(id(module)) or self.place()[0]

    def _listening(self) -> bool:
        return threading.get_ident() == self._thread and not in_backward()

    def _before(self, module: nn.Module, _args: tuple[Any, ...]) -> None:
        if self._listening():
            self.modules.append(module)
            self._entered(module)

    def _after(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        """`rest` is (kwargs, result); torch leaves the kwargs out when the module raised."""
        if not self._listening() or module not in self.modules:
            return
        while self.modules.pop() is not module:
            pass
        self._left(module, args, rest[0] if len(rest) == 2 else {}, rest[1] if len(rest) == 2 else None)


class CalledModules:
    """Which module is being called, found on request: hooks would cost time at every call of a module."""

    def __init__(self, model: nn.Module) -> None:
        self._names = {id(module): name or ROOT for name, module in model.named_modules()}

    def place(self) -> tuple[str, str]:
        """(qualified name, class name) of the innermost module of the model whose call is running."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is CALL:
                module = frame.f_locals["self"]
                if id(module) in self._names:
                    return self._names[id(module)], type(module).__name__
            frame = frame.f_back
        return ROOT, ""


def in_backward() -> bool:
    """True inside autograd's backward pass."""
    return bool(torch._C._current_graph_task_id() != -1)
