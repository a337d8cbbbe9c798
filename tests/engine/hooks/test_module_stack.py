"""The modules that are being called, by global hooks that leave nothing behind."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from inspector.engine.hooks.module_stack import ModuleStack


def test_nothing_is_left_of_the_global_hooks_so_that_compiling_afterwards_does_not_warn() -> None:
    model = nn.Linear(2, 2)
    stack = ModuleStack(model, lambda *_: None, lambda *_: None)
    assert torch_module._has_any_global_hook()
    model(torch.zeros(1, 2))
    stack.close()
    assert not torch_module._has_any_global_hook()
