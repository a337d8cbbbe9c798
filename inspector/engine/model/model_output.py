"""Scores and a loss in what a model returns: a tensor, a tuple, a dictionary, an object with `logits` and `loss`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

from torch import Tensor, nn

from inspector.engine.model.batch import Batch

LOGITS = "logits"
NAMED = (LOGITS, "last_hidden_state")
"""What the fields of an output that may be scores are called: Hugging Face's, which many others follow."""
LOSS = "loss"
WANTED = ("labels", "label", "targets", "target")
"""What a forward calls the right answers that it computes its own loss from."""


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
    """Whether the model's output may hold a loss: asked before it runs, since gradients have to be recorded or not.

    Some forward in it uses the word as a variable, keyword or key, and a parameter for the right answers, where there
    is one, is given. A model that only mentions it is run with gradients for nothing; one that takes the word from
    elsewhere is run without, and the log says what to do. `batch` is None where somebody else calls the model.
    """
    for module in model.modules():
        forward = getattr(module, "forward", None)
        code = getattr(inspect.unwrap(forward), "__code__", None) if callable(forward) else None
        if isinstance(code, CodeType) and LOSS in _words(code):
            break
    else:
        return False
    if batch is None:
        return True
    try:
        parameters = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return True
    return all(name in batch for name in parameters if name in WANTED)


def _words(code: CodeType) -> set[str]:
    """Names, variables and literal words of a function, those of keyword arguments and dictionary keys included."""
    found = {*code.co_names, *code.co_varnames, *code.co_cellvars}
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, tuple):
            found.update(item for item in constant if isinstance(item, str))
        elif isinstance(constant, CodeType):
            found.update(_words(constant))
    return found
