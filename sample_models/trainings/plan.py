"""What all recorded trainings share: the plan of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from sample_models.base import Batch, Plain

Draw = Callable[[torch.Generator], Plain]


@dataclass(slots=True)
class Plan:
    """One training, to be watched.

    Attributes:
        draw: the next batch. loss: (output, batch) → (b, t) in nats, NaN where a step has none; its mean is trained on.
        probe: the batch whose first sequence every frame shows.
        clip: largest norm of the gradient, None for no clipping.
        steps, every, probe_every: iterations in all, from one recorded row to the next, from one frame to the next.
        notes: sentences about iterations before whose batch something is done.
    """

    model: nn.Module
    optimizer: Optimizer
    draw: Draw
    loss: Callable[[Any, Batch], Tensor]
    probe: Plain
    clip: float | None = None
    steps: int = 400
    every: int = 1
    probe_every: int = 50
    notes: Mapping[int, str] = field(default_factory=dict)


def mean_loss(values: Tensor) -> Tensor:
    """The mean over the steps that have a loss."""
    return values.nansum() / (~values.isnan()).sum()


def one(draw: Draw, seed: int = 1) -> Plain:
    """The first sequence of a batch of another seed, for the probe."""
    batch = draw(torch.Generator().manual_seed(seed))
    targets = None if batch.targets is None else batch.targets[:1]
    return Plain(batch.inputs[:1], batch.lengths[:1], targets)
