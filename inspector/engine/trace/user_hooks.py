"""Hooks that a model had before the run: on modules (backward hooks) and on parameters, each watched for a change.

They are called as before, through objects that note whether the gradient that they return is another one. While a step
is differentiated on autograd's graph of the run they are not called: they belong to the backward pass of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from inspector.engine.trace.gradient_hooks import WatchedHook, silent


class WatchedModuleHook:
    """A backward hook of a module in place of itself.

    Attributes:
        name: of the module; "" for the model.
        calls: how often it was called; changed: whether it ever returned, or wrote into, another gradient.
    """

    def __init__(self, name: str, hook: Any) -> None:
        self.name, self.hook, self.calls, self.changed = name, hook, 0, False

    def __call__(self, module: nn.Module, *gradients: Any) -> Any:
        """What the hook returns. `gradients`: (those at the inputs, those at the outputs), or the latter alone."""
        if silent():
            return None
        self.calls += 1
        every = [one for own in gradients for one in _tensors(own)]
        versions = [one._version for one in every]
        found = self.hook(module, *gradients)
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self.changed |= [one._version for one in every] != versions
            self.changed |= found is not None and not _same(_tensors(found), _tensors(gradients[0]))
        return found


def _tensors(values: Any) -> list[Tensor]:
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [one for one in values if isinstance(one, Tensor)]


def _same(found: Sequence[Tensor], given: Sequence[Tensor]) -> bool:
    return len(found) == len(given) and all(
        one is other or torch.equal(one, other) for one, other in zip(found, given, strict=True)
    )


@dataclass(slots=True)
class UserHooks:
    """The hooks of one run. `modules`: the watched ones of modules; `parameters`: those of parameters."""

    modules: list[WatchedModuleHook] = field(default_factory=list)
    parameters: list[WatchedHook] = field(default_factory=list)

    @contextmanager
    def watched(self, model: nn.Module) -> Iterator[None]:
        """Inside, every hook of the model is watched."""
        put: list[tuple[MutableMapping[int, Any], int, Any]] = []
        try:
            for parameter in model.parameters():
                for own, key, hook in _each(parameter._backward_hooks):
                    self.parameters.append(WatchedHook(parameter, hook))
                    put.append((own, key, hook))
                    own[key] = self.parameters[-1]
            for name, own, key, hook in _of_modules(model):
                self.modules.append(WatchedModuleHook(name, hook))
                put.append((own, key, hook))
                own[key] = self.modules[-1]
            yield
        finally:
            for own, key, hook in put:
                if key in own:  # it may have been removed in the run
                    own[key] = hook

    def let_go(self) -> None:
        """Release what the hooks refer to."""
        for one in self.parameters:
            one.let_go()
        self.parameters.clear()
        self.modules.clear()


def _each(hooks: Any) -> list[tuple[MutableMapping[int, Any], int, Any]]:
    return [(hooks, key, hook) for key, hook in list((hooks or {}).items())]


def _of_modules(model: nn.Module) -> Iterator[tuple[str, MutableMapping[int, Any], int, Any]]:
    for name, module in model.named_modules():
        for hooks in (module._backward_hooks, module._backward_pre_hooks):
            yield from ((name, *one) for one in _each(hooks))
    for hooks in (torch_modules._global_backward_hooks, torch_modules._global_backward_pre_hooks):
        yield from (("", *one) for one in _each(hooks))
