"""A program of torch.export as modules: unflattened, its graphs run as code, its fused layers torch's own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.export.unflatten import InterpreterModule, InterpreterModuleDispatcher, UnflattenedModule

from inspector.engine.programs.agreement import difference
from inspector.engine.programs.graphs import Rewritten, put_layers, roll, run_choosing


def as_modules(exported: Any, flat: list[Any], expected: Any) -> tuple[nn.Module, Rewritten, str]:
    """The tree of modules that computes what the program does, what was rewritten in it, and why nothing was, or "".

    `flat`: the inputs of an example; `expected`: what the program computes from them. Where the rewritten tree computes
    anything else, the one that torch makes is returned as it is.
    """
    model = _unflattened(exported)
    found = Rewritten()
    try:
        with _grouped(model, found):
            run_choosing(model, model.graph, tuple(flat), found)
        for place, module in _with_graphs(model):
            put_layers(module, module.graph, place, found)
            module.finalize()
            roll(module.graph_module, place, found)
        with torch.no_grad():
            apart = difference(call(model, exported, flat), expected)
        if apart <= 1:
            return model, found, ""
        why = "the modules made of it computed other numbers"
    except Exception as fault:  # noqa: BLE001 - torch's own modules, which are another way to run it, remain
        why = f"its graph could not be rewritten ({type(fault).__name__})"
    return _unflattened(exported), Rewritten(), why


def call(model: nn.Module, exported: Any, flat: list[Any]) -> Any:
    """Run the unflattened program on its inputs in order."""
    spec = exported.call_spec.in_spec
    args, kwargs = torch.utils._pytree.tree_unflatten(flat, spec)
    return model(*args, **kwargs)


def _unflattened(exported: Any) -> UnflattenedModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: UnflattenedModule = torch.export.unflatten(exported)
    for module in _every(model):
        if hasattr(module, "_run_with_interpreter"):
            module._run_with_interpreter = False  # as generated code, each operation has a line of its own
    return model


def _every(model: nn.Module) -> Iterator[Any]:
    """All modules, also those that a dispatcher calls in turn."""
    for module in model.modules():
        yield module
        if isinstance(module, InterpreterModuleDispatcher):
            yield from module.call_modules()


def _with_graphs(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for place, module in model.named_modules():
        if isinstance(module, (InterpreterModule, UnflattenedModule)):
            yield place, module
        elif isinstance(module, InterpreterModuleDispatcher):
            for one in module.call_modules():
                yield place, one


@contextmanager
def _grouped(model: nn.Module, found: Rewritten) -> Iterator[None]:
    """While the example runs, each module chooses the functions of its own graph at its first call."""
    changed: list[Any] = []
    for _, module in _with_graphs(model):
        if isinstance(module, InterpreterModule):
            module.forward = _chooser(module, found)  # type: ignore[method-assign]
            changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.forward


def _chooser(module: InterpreterModule, found: Rewritten) -> Any:

    def forward(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *(kwargs[name] for name in module.arg_names[len(args) :]))
        if module.__dict__.get("_chosen"):
            return torch.fx.Interpreter(module, graph=module.graph).run(*given, enable_io_processing=False)
        module.__dict__["_chosen"] = True
        return run_choosing(module, module.graph, given, found)

    return forward
