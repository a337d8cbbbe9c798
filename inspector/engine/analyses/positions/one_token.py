"""The selected sequence with one token at every step: what then differs between steps comes from positions alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.rerun import copies
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch, NamedInput
from inspector.engine.trace.trace import Trace

ONE_TOKEN = (
    "The input has one token alone (id {}), and the model's ids are not known; two tokens are needed to tell what "
    "depends on the position from what depends on the token."
)
KINDS = 2
"""An input beside the primary one that has so many different ids at most says segments or a mask, not tokens."""
LEAST_TIMES, LEAST_WHOLE_TIMES = 4, 8
"""Fewer numbers, or whole numbers, which might be ids, may rise by chance."""


def one_token(trace: Trace, which: int) -> Batch:
    """A batch of the selected sequence in which every sequence of tokens or numbers is the same at each of its steps.

    which: 0 or 1, of two that differ at every step. Tokens: the two nearest to the middle that are not alike; numbers:
    the mean over the steps, and that plus one standard deviation. Positions that are given as an input (0, 1, 2, …),
    times, masks and states stay as they are; segments are those of most steps. Raises Unsupported.
    """
    batch = copies(trace.batch, 1)
    named: Mapping[str, NamedInput] = {
        name: one if one.tensor is None else replace(one, tensor=_constant(trace, name, one, which))
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=batch.targets, title=batch.title)


def _constant(trace: Trace, name: str, one: NamedInput, which: int) -> Tensor:
    tensor = one.tensor
    assert tensor is not None
    length = int(one.lengths[0])
    if one.kind == "image":
        return torch.full_like(tensor, _number(tensor, which))
    if one.kind not in ("tokens", "vectors") or tensor.dim() < 2 or is_time(trace, name):
        return tensor
    row = tensor[0, :length]
    if tensor.is_floating_point():
        made: Tensor | int = row.mean(0) + which * row.std(0, correction=0).clamp_min(1e-3)
    else:
        primary = name == trace.batch.primary
        if row.dim() != 1 or (not primary and _counts(row)):
            return tensor
        made = _token(trace, row, which) if primary or len(row.unique()) > KINDS else int(row.mode().values)
    out = tensor.clone()
    out[0, :length] = made
    return out


def is_time(trace: Trace, name: str) -> bool:
    """Whether an input beside the primary one is one number a step that only rises: when each step was."""
    one = trace.batch.named[name]
    if one.tensor is None or one.kind not in ("tokens", "vectors") or name == trace.batch.primary:
        return False
    row = one.tensor[trace.batch.look_at, : int(one.lengths[trace.batch.look_at])]
    least = LEAST_TIMES if row.is_floating_point() else LEAST_WHOLE_TIMES
    if row.dim() not in (1, 2) or row.numel() != len(row) or len(row) < least:
        return False
    return bool((row.reshape(-1).diff() > 0).all())


def _number(values: Tensor, which: int) -> float:
    return float(values.double().mean() + which * max(1e-3, float(values.double().std(correction=0))))


def _counts(row: Tensor) -> bool:
    """Whether ids are 0, 1, 2, … or count on from another number."""
    return len(row) > 1 and bool((row.diff() == 1).all())  # times of equal distances need no mention


def _token(trace: Trace, row: Tensor, which: int) -> int:
    """One of two tokens (ids) that the sequence has, or that the model knows."""
    middle = len(row) // 2
    nearest = sorted(range(len(row)), key=lambda step: abs(step - middle))
    kinds = list(dict.fromkeys(int(row[step]) for step in nearest))
    if len(kinds) < 2:
        known = [int(one) for one in trace.batch.inputs.unique()] or []
        kinds += [one for one in known if one not in kinds]
    if len(kinds) < 2 and len(trace.subject.vocabulary or ()) > 1:
        kinds.append(1 if kinds[0] == 0 else 0)
    if len(kinds) < 2:
        raise Unsupported(ONE_TOKEN.format(kinds[0]))
    return kinds[which]
