"""Parts that torch.compile compiled run as the Python that they were compiled from while probes watch them.

Compiled code calls no hooks and no function modes. What runs in its place is the same function; its numbers differ by
rounding, and dropout draws other masks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from inspector.engine.model.flex_on_cpu import flex_followed
from inspector.engine.model.late_imports import FLEX, bring_in

ORIGINAL = "_orig_mod"
CALL = "_compiled_call_impl"
COMPILING = ("torch._dynamo", FLEX)
"""Modules without which nothing is compiled; flex_attention compiles itself at its first call."""


def original(model: nn.Module) -> nn.Module:
    """The module that torch.compile was given; any other module as it is."""
    while type(model).__name__ == "OptimizedModule" and isinstance(getattr(model, ORIGINAL, None), nn.Module):
        model = getattr(model, ORIGINAL)
    return model


@contextmanager
def uncompiled(model: nn.Module) -> Iterator[list[str]]:
    """Inside, compiled parts of a model and compiled functions run uncompiled; yields the names of those parts.

    Parts are named as without torch.compile ("encoder.rnn", not "encoder._orig_mod.rnn"). Afterwards everything is as
    it was before. Where nothing can have been compiled, nothing is done. Autograd follows flex_attention on a CPU too,
    which it does only uncompiled.
    """
    bring_in(original(model))
    if not any(name in sys.modules for name in COMPILING):
        yield []
        return
    swapped, calls, names = [], [], []
    for name, module in list(original(model).named_modules()):
        for key, child in list(module._modules.items()):
            if child is not None and original(child) is not child:
                swapped.append((module, key, child))
                module._modules[key] = original(child)
                names.append(f"{name}.{key}".lstrip(".").replace(f"{ORIGINAL}.", ""))
    if original(model) is not model:
        names.insert(0, "the model")
    for name, module in original(model).named_modules():
        if getattr(module, CALL, None) is not None:
            calls.append((module, getattr(module, CALL)))
            setattr(module, CALL, None)
            names.append(name or "the model")
    try:
        with torch.compiler.set_stance("force_eager"), flex_followed():
            yield names
    finally:
        for module, key, child in swapped:
            module._modules[key] = child
        for module, call in calls:
            setattr(module, CALL, call)


def unwrap_(model: nn.Module) -> nn.Module:
    """The model without torch.compile for good, in place: for a model that nobody else uses."""
    model = original(model)
    for module in list(model.modules()):
        for key, child in list(module._modules.items()):
            if child is not None and original(child) is not child:
                module._modules[key] = original(child)
    for module in model.modules():
        if getattr(module, CALL, None) is not None:
            setattr(module, CALL, None)
    return model
