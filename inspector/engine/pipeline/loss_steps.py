"""Which entries of a loss carry one: NaN that means "no loss here" is told apart from NaN that the model made.

The loss function is called once more, on an output of the same form whose numbers are all between 0.1 and 0.9: what is
NaN then as well is no loss. Counter-example: a function that leaves out steps by what the model answered gives other
steps for another output; a NaN of its own counts as made by the model.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from inspector.engine.trace.trace import Trace

IGNORED = -100
"""The target that torch's losses leave out by default (`ignore_index`)."""
LOW, HIGH = 0.1, 0.9
"""Valid as scores, as probabilities and as their logarithms' arguments."""


def loss_steps(trace: Trace, output: Any, loss: Tensor) -> Tensor:
    """True where an entry of the loss carries one, in the shape of the loss."""
    nan = loss.detach().isnan()
    if not bool(nan.any()):
        return ~nan
    tried = _of_another_output(trace, output)
    if tried is not None and tried.shape == loss.shape:
        return ~(nan & tried.isnan())
    return ~(nan & ~_bad_scores(trace, nan)) | _targets_nan(trace, nan)


def _of_another_output(trace: Trace, output: Any) -> Tensor | None:
    """The loss of an output of finite numbers; None where the loss is the model's own or cannot be called so."""
    if trace.subject.loss is None:
        return None
    random = torch.Generator().manual_seed(31)
    with suppress(Exception, SystemExit), torch.no_grad():  # the user's code may raise anything at another output
        found = trace.subject.loss_of(_replaced(output, random), trace.batch)
        return found.detach() if isinstance(found, Tensor) else None
    return None


def _replaced(value: Any, random: torch.Generator) -> Any:
    """The same value with every tensor of floating point replaced by one of the same shape."""
    if isinstance(value, Tensor):
        if not value.is_floating_point():
            return value
        numbers = torch.rand(value.shape, generator=random, dtype=torch.float64) * (HIGH - LOW) + LOW
        return numbers.to(value.device, value.dtype)
    if isinstance(value, Mapping):
        other: Any = copy.copy(value)
        for key in value:
            other[key] = _replaced(value[key], random)
        return other
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(part, random) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(_replaced(part, random) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        made: Any = copy.copy(value)
        for field in fields(value):
            object.__setattr__(made, field.name, _replaced(getattr(value, field.name), random))
        return made
    return value


def _bad_scores(trace: Trace, nan: Tensor) -> Tensor:
    """True where the model's scores at the entry are not finite; nowhere where they have other steps than the loss."""
    scores = trace.logits if trace.logits is not None else trace.output
    if not isinstance(scores, Tensor) or not scores.is_floating_point() or scores.shape[: nan.dim()] != nan.shape:
        return torch.zeros_like(nan)
    finite = scores.detach().isfinite()
    return ~(finite.flatten(nan.dim()).all(-1) if scores.dim() > nan.dim() else finite).to(nan.device)


def _targets_nan(trace: Trace, nan: Tensor) -> Tensor:
    """True at NaN of the loss whose target is there, where the targets are numbers for each entry that mark some as
    left out; nowhere else."""
    targets = trace.batch.targets
    if not isinstance(targets, Tensor) or targets.shape != nan.shape:
        return torch.zeros_like(nan)
    out = targets.isnan() if targets.is_floating_point() else targets == IGNORED
    return nan & ~out.to(nan.device) if bool(out.any()) else torch.zeros_like(nan)
