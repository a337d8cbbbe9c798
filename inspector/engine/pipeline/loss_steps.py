"""Which entries of a loss carry one: NaN that means "no loss here" is told apart from NaN that the model made.

Targets that mark entries as left out (NaN, or −100) decide for those. Otherwise the loss function is called again, on
outputs of the same form: numbers drawn at random, and the answers that the targets or the input's tokens would ask for.
What is NaN with all of them is no loss. Counter-example: a loss that is NaN for nearly every output (the logarithm of a
negative number) is taken for none where the model makes it NaN too; a function that leaves out steps by what the model
answered gives other steps for another output, and a NaN of its own counts as made by the model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from inspector.engine.trace.trace import Trace

IGNORED = -100
"""The target that torch's losses leave out by default (`ignore_index`)."""
LOW, HIGH = 0.1, 0.9
"""Valid as scores, as probabilities and as their logarithms' arguments."""
SURE = 8.0
"""Score of the token that an answer favours, beside zeros."""
CALLS = 8
"""Random outputs: a loss that is NaN for two of five of them is NaN for all in one of 1,500 entries."""
BY_TARGETS = "NaN means no loss where the targets leave the entry out. "
BY_CALLS = (
    "NaN means no loss where the loss of other outputs (random ones, and those that agree with the targets or the "
    "input) is NaN at the entry every time; a loss that is NaN for nearly every output would be taken for none."
)
BY_SCORES = (
    "NaN means no loss where the model's scores at the step are finite: the loss could not be computed for another "
    "output to compare with, so a NaN that the loss made of finite scores is not told apart."
)


def loss_steps(trace: Trace, output: Any, loss: Tensor) -> Tensor:
    """True where an entry of the loss carries one, in its shape; what decided is kept in `trace.loss_rule`."""
    nan = loss.detach().isnan()
    trace.loss_rule = ""
    if not bool(nan.any()):
        return ~nan
    left = _left_out(trace, nan)
    always = _of_other_outputs(trace, output, nan)
    if always is not None:
        trace.loss_rule = (BY_TARGETS if bool(left.any()) else "") + BY_CALLS
        return ~(nan & (left | always))
    trace.loss_rule = BY_TARGETS + BY_SCORES if bool(left.any()) else BY_SCORES
    return ~(nan & ~_bad_scores(trace, nan)) | (nan & ~left & left.any())


def _of_other_outputs(trace: Trace, output: Any, nan: Tensor) -> Tensor | None:
    """Where the loss of every other output is NaN; None where it is the model's own or cannot be called so."""
    if trace.subject.loss is None:
        return None
    always: Tensor | None = None
    for make in _answers(trace):
        found: Any = None
        with suppress(Exception, SystemExit), torch.no_grad():  # the user's code may raise anything at another output
            found = trace.subject.loss_of(_replaced(output, make), trace.batch)
        if isinstance(found, Tensor) and found.shape == nan.shape:
            always = (nan if always is None else always) & found.detach().isnan()
            if not bool(always.any()):
                break
    return always


def _answers(trace: Trace) -> Iterator[Callable[[Tensor], Tensor]]:
    """What makes other outputs of a tensor: random numbers, and answers that agree with the targets or the input."""
    random = torch.Generator().manual_seed(31)

    def drawn(value: Tensor) -> Tensor:
        numbers = torch.rand(value.shape, generator=random, dtype=torch.float64) * (HIGH - LOW) + LOW
        return numbers.to(value.device, value.dtype)

    yield from [drawn] * CALLS
    given = trace.batch.targets, trace.batch.inputs
    for right in (one for one in given if isinstance(one, Tensor)):
        shifted = [right] if right.is_floating_point() or right.dim() < 2 else [right, right.roll(-1, 1)]
        yield from (partial(_agreeing, one, drawn) for one in shifted)


def _agreeing(right: Tensor, drawn: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """Scores that favour these tokens, or these numbers themselves, where the shapes allow it; else random numbers."""
    if right.is_floating_point():
        return right.nan_to_num(0.5).to(value) if right.shape == value.shape else drawn(value)
    tokens = right.clamp(min=0)
    if value.shape[:-1] != right.shape or int(tokens.max()) >= value.shape[-1]:
        return drawn(value)
    return SURE * torch.nn.functional.one_hot(tokens.to(value.device), value.shape[-1]).to(value.dtype)


def _replaced(value: Any, make: Callable[[Tensor], Tensor]) -> Any:
    """The same value with every tensor of floating point replaced by one of the same shape."""
    if isinstance(value, Tensor):
        return make(value) if value.is_floating_point() else value
    if isinstance(value, Mapping):
        other: Any = copy.copy(value)
        for key in value:
            other[key] = _replaced(value[key], make)
        return other
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(part, make) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(_replaced(part, make) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        made: Any = copy.copy(value)
        for field in fields(value):
            object.__setattr__(made, field.name, _replaced(getattr(value, field.name), make))
        return made
    return value


def _bad_scores(trace: Trace, nan: Tensor) -> Tensor:
    """True where the model's scores at the entry are not finite; nowhere where they have other steps than the loss."""
    scores = trace.logits if trace.logits is not None else trace.output
    if not isinstance(scores, Tensor) or not scores.is_floating_point() or scores.shape[: nan.dim()] != nan.shape:
        return torch.zeros_like(nan)
    finite = scores.detach().isfinite()
    return ~(finite.flatten(nan.dim()).all(-1) if scores.dim() > nan.dim() else finite).to(nan.device)


def _left_out(trace: Trace, nan: Tensor) -> Tensor:
    """True at entries that the targets leave out, where they are numbers for each entry; nowhere else."""
    targets = trace.batch.targets
    if not isinstance(targets, Tensor) or targets.shape != nan.shape:
        return torch.zeros_like(nan)
    out = targets.isnan() if targets.is_floating_point() else targets == IGNORED
    return out.to(nan.device)
