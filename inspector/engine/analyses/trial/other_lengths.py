"""A batch with fewer or more steps, made of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch


def of_length(batch: Batch, steps: int) -> Batch:
    """The first steps of the primary input, or its steps again and again; whatever lies along them follows.

    All sequences are as long as the batch. Inputs with other step axes stay as they are. Raises Unsupported where the
    targets cannot follow.
    """
    axis, own = batch.first.axis, batch.steps
    if not axis:
        raise Unsupported("The input has no steps, so it has no other lengths.")
    named = {
        name: one
        if one.axis != axis
        else replace(one, tensor=_along(one.tensor, steps), lengths=torch.full_like(one.lengths, steps), names=())
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=_targets(batch.targets, own, steps), look_at=batch.look_at)


def _targets(targets: Any, own: int, steps: int) -> Any:
    """(b, t, …) follows; (b,), one of each sequence, stays."""
    if targets is None or (isinstance(targets, Tensor) and targets.dim() < 2):
        return targets
    if isinstance(targets, Tensor) and targets.shape[1] == own:
        return _along(targets, steps)
    raise Unsupported("The targets do not lie along the steps of the input, so no other length can be tried.")


def _along(tensor: Tensor | None, steps: int) -> Tensor | None:
    if tensor is None or tensor.shape[1] >= steps:
        return tensor if tensor is None else tensor[:, :steps].contiguous()
    repeats = -(-steps // tensor.shape[1])
    return torch.cat([tensor] * repeats, 1)[:, :steps].contiguous()
