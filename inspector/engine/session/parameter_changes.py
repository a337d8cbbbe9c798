"""What changed from one checkpoint to another, tensor by tensor, read without a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from inspector.engine.errors import CancelledError, InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.records import ParameterChange, ParameterChanges

PREFIXES = ("module.", "_orig_mod.", "model.")
"""What wrappers put before every name; removed where the other checkpoint has none of it."""
MOST = 20_000
"""Tensors that are listed."""


def parameter_changes(first: Path, second: Path, cancelled: Callable[[], bool] = lambda: False) -> ParameterChanges:
    """Compare two checkpoints; differences and norms are computed in float64. Raises InputError, CancelledError."""
    for path in (first, second):
        if not path.exists():
            raise InputError(f"There is no checkpoint {path}.")
    before, after = read_checkpoint(first), read_checkpoint(second)
    one, other = _matched(before.tensors, after.tensors)
    if not one.keys() & other.keys():
        raise InputError(f"{first.name} and {second.name} have no tensor in common: {_some(one)} and {_some(other)}.")
    found = []
    for name in dict.fromkeys((*one, *other)):
        if cancelled():
            raise CancelledError
        found.append(_changed(name, one.get(name), other.get(name), first.name, second.name))
    found.sort(key=lambda change: (bool(change.problem), -_size(change.relative), -_size(change.change)))
    steps = tuple(-1 if state.step is None else state.step for state in (before, after))
    return ParameterChanges(
        first=str(first), second=str(second), changes=tuple(found[:MOST]), steps=steps,
        left_out=max(0, len(found) - MOST),
    )  # fmt: skip


def _size(value: float) -> float:
    """Of NaN, which is a change that cannot be sized, more than any."""
    return math.inf if math.isnan(value) else value


def _matched(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Both with equal names: a prefix that all names of one side have and none of the other side is removed."""
    sides = [dict(one), dict(other)]
    for prefix in PREFIXES:
        have = [bool(side) and all(name.startswith(prefix) for name in side) for side in sides]
        if have[0] != have[1]:
            at = have.index(True)
            sides[at] = {name.removeprefix(prefix): tensor for name, tensor in sides[at].items()}
    return sides[0], sides[1]


def _changed(name: str, one: Tensor | None, other: Tensor | None, first: str, second: str) -> ParameterChange:
    if one is None or other is None:
        present = other if one is None else one
        assert present is not None
        where = second if one is None else first
        return ParameterChange(name=name, shape=tuple(present.shape), problem=f"only {where} has it")
    shape = tuple(other.shape)
    if tuple(one.shape) != shape:
        return ParameterChange(
            name=name, shape=shape, problem=f"of shape {tuple(one.shape)} in {first}, {shape} in {second}"
        )
    if one.is_quantized or other.is_quantized:
        return ParameterChange(name=name, shape=shape, problem="quantised")
    a, b = _double(one), _double(other)
    difference = b - a
    norms = [float(torch.linalg.vector_norm(values)) for values in (a, b, difference)]
    relative = norms[2] / norms[0] if norms[0] else (math.inf if norms[2] else 0.0)
    largest = float(difference.abs().max()) if difference.numel() else 0.0
    return ParameterChange(
        name=name, shape=shape, elements=one.numel(), first=norms[0], second=norms[1], change=norms[2],
        relative=relative, largest=largest,
    )  # fmt: skip


def _double(tensor: Tensor) -> Tensor:
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return torch.view_as_real(dense.to(torch.complex128)) if dense.is_complex() else dense.to(torch.float64)


def _some(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(list(tensors)[:3]) + (" …" if len(tensors) > 3 else "") if tensors else "nothing"
