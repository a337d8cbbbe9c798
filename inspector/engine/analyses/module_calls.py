"""Every call of a module during one call of the model: what it was given and what it returned, with their graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map


@dataclass(slots=True)
class ModuleCall:
    """One call. `given`, `result`: the first tensor of floating point of the arguments and of what was returned."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    given: Tensor | None
    result: Tensor | None

    def again(self) -> Any:
        """Call the module again on the same values, without their graph and without a cache: that of the run is full.

        A cache is an object whose class is called so. Counter-example: a model that keeps one in a list of tensors.
        """
        return self.module(
            *(_plain(one) for one in self.args), **{key: _plain(one) for key, one in self.kwargs.items()}
        )


def module_calls(model: nn.Module, run: Callable[[], Any]) -> tuple[Any, list[ModuleCall]]:
    """(what `run` returned, the calls of all modules of the model in the order in which they returned).

    Fused paths are off while hooks are on modules: results may differ from those of a plain call by rounding.
    """
    found: list[ModuleCall] = []

    def hook(name: str) -> Any:
        def called(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            found.append(ModuleCall(name, module, args, kwargs, first_tensor((args, kwargs)), first_tensor(result)))

        return called

    handles = [
        module.register_forward_hook(hook(name), with_kwargs=True)
        for name, module in model.named_modules()
        if not isinstance(module, torch.jit.ScriptModule)
    ]
    try:
        return run(), found
    finally:
        for handle in handles:
            handle.remove()


def _plain(value: Any) -> Any:
    if "cache" in type(value).__name__.lower():
        return None
    return tree_map(lambda one: one.detach() if isinstance(one, Tensor) else one, value)


def first_tensor(values: Any) -> Tensor | None:
    """The first tensor of floating point in any nesting of tuples, lists and dicts."""
    leaves = (leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.is_floating_point())
    return next(leaves, None)


def same_numbers(one: Tensor | None, other: Tensor | None) -> bool:
    """Whether two tensors are the same memory, seen in the same way. Both must be alive."""
    if one is None or other is None:
        return False
    return one is other or (one.shape == other.shape and one.stride() == other.stride() and same_memory(one, other))


def same_memory(one: Tensor | None, other: Tensor | None) -> bool:
    """The same, but for the order of the axes."""
    if one is None or other is None:
        return False
    return one.numel() == other.numel() > 0 and one.data_ptr() == other.data_ptr()
