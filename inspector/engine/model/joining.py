"""Sequences of one length, one after the other, as one batch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.model.batch import Batch, NamedInput

MOST_TOGETHER, MOST_STEPS = 256, 1 << 15
"""Sequences of a batch, and their steps in all. What is done at each step of a batch costs the same for few short
sequences as for many; larger batches save no time, since their gates leave the cache."""


def shape_key(batch: Batch) -> Hashable:
    """Equal for batches of one sequence that can be one batch without padding."""
    inputs = tuple(
        (name, one.kind, None if one.tensor is None else (one.tensor.shape, one.tensor.dtype), *one.lengths.tolist())
        for name, one in batch.named.items()
    )
    targets = batch.targets
    known = (tuple(targets.shape), targets.dtype) if isinstance(targets, Tensor) else (targets is None, id(targets))
    return inputs, known


def most_together(batch: Batch) -> int:
    """How many sequences like this one are run at once."""
    return max(1, min(MOST_TOGETHER, MOST_STEPS // max(1, batch.steps)))


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch of several of one sequence each, which have the same shape key."""
    first = batches[0]
    if len(batches) == 1:
        return first
    named = {name: _one([batch.named[name] for batch in batches]) for name in first.named}
    known = [batch.targets for batch in batches]
    targets = torch.cat(known) if all(isinstance(one, Tensor) for one in known) else first.targets
    return Batch.of(named, first.primary, targets=targets, title=first.title)


def _one(parts: Sequence[NamedInput]) -> NamedInput:
    first = parts[0]
    tensors = [part.tensor for part in parts if part.tensor is not None]
    return replace(
        first,
        tensor=torch.cat(tensors) if len(tensors) == len(parts) else None,
        lengths=torch.cat([part.lengths for part in parts]),
        names=tuple(name for part in parts for name in part.names),
        sound=tuple(sound for part in parts for sound in part.sound),
    )
