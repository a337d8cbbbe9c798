"""A model called in the precision of its parameters, whatever autocast its caller has switched on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def without_autocast(model: nn.Module) -> Iterator[None]:
    """Inside, autocast is off while a module of the model runs, and afterwards as it was.

    Sums that are made in another order differ in half precision by as much as a fault that is looked for. Code of the
    caller's between two modules, such as its loss, is left as it is: torch computes losses in float32 by itself.
    """
    kinds = sorted({"cpu", *(one.device.type for one in model.parameters())} - {"meta"})
    before: list[list[bool]] = []

    def off(*_given: Any) -> None:
        before.append([torch.is_autocast_enabled(kind) for kind in kinds])
        for kind in kinds:
            torch.set_autocast_enabled(kind, False)

    def back(*_given: Any) -> None:
        for kind, was in zip(kinds, before.pop(), strict=True):
            torch.set_autocast_enabled(kind, was)

    hooks = []
    try:
        for one in model.modules():
            hooks.append(one.register_forward_pre_hook(off, prepend=True))
            hooks.append(one.register_forward_hook(back, always_call=True))
        yield
    finally:
        for hook in hooks:
            hook.remove()
