"""Scores and a loss in what a model returns: a tensor, a tuple, a dictionary, an object with `logits` and `loss`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CodeType
from typing import Any

from torch import Tensor, nn

from inspector.engine.model.batch import Batch

LOGITS = "logits"
NAMED = (LOGITS, "last_hidden_state")
"""Names of fields of an output that may be scores: Hugging Face's, which many others use."""
LOSS = "loss"
WANTED = ("labels", "label", "targets", "target")
"""Names of a forward's parameters for the targets from which it computes its own loss."""


def field_of(output: Any, name: str) -> Any:
    """An output's item or attribute of a name; None where it has none."""
    if isinstance(output, Mapping):
        return output.get(name)
    return None if isinstance(output, Tensor) else getattr(output, name, None)


def candidates(output: Any) -> Iterator[tuple[str, Tensor]]:
    """(field, tensor) of everything in an output that may be scores (b, t, v), the likeliest first; "" has no name."""
    if isinstance(output, Tensor):
        yield "", output
        return
    for name in NAMED:
        found = field_of(output, name)
        if isinstance(found, Tensor):
            yield name, found
    if isinstance(output, (tuple, list)):
        yield from (("", item) for item in output if isinstance(item, Tensor))


def loss_in(output: Any) -> Tensor | None:
    """The loss that a model computed itself, where its output has one."""
    found = field_of(output, LOSS)
    return found if isinstance(found, Tensor) and found.is_floating_point() else None


def may_return_loss(model: nn.Module, batch: Batch | None) -> bool:
    """Whether the model's output may have a loss: decided before it runs, since gradients have to be recorded or not.

    Some forward in it uses "loss" as a variable, keyword or key, or makes an object that has a field of that name; and
    a parameter for the targets, where there is one, is given. A model that only mentions the name is run with gradients
    without need; one that gets the name from elsewhere is run without, and the log says what to do. `batch` is None
    where the model is called by other code.
    """
    forwards = {id(forward): forward for module in model.modules() if callable(forward := _forward(module))}
    if not any(_mentions_loss(inspect.unwrap(forward)) for forward in forwards.values()):
        return False
    if batch is None:
        return True
    try:
        parameters = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return True
    return all(name in batch for name in parameters if name in WANTED)


def _forward(module: nn.Module) -> Any:
    """The function of a module's forward: the same for all modules of a class."""
    found = getattr(module, "forward", None)
    return getattr(found, "__func__", found)


def _mentions_loss(function: Callable[..., Any]) -> bool:
    """Whether the code of a function contains the name "loss", or the name of a class with such a field."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    words = _names_in(code)
    known = dict(getattr(function, "__globals__", {}))
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        with suppress(ValueError):  # a variable of the enclosing function may not be set yet
            known[name] = cell.cell_contents
    classes = (known[word] for word in words if isinstance(known.get(word), type))
    return LOSS in words or any(LOSS in inspect.get_annotations(one) or hasattr(one, LOSS) for one in classes)


def _names_in(code: CodeType) -> set[str]:
    """Names, variables and literal strings of a function, those of keyword arguments and dictionary keys included."""
    found = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, tuple):
            found.update(item for item in constant if isinstance(item, str))
        elif isinstance(constant, CodeType):
            found.update(_names_in(constant))
    return found
