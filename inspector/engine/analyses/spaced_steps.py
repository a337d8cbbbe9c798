"""Evenly spaced steps of one sample, where every step would cost too much."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.trace.trace import Recurrence


def spaced_blocks(recurrence: Recurrence, sample: int, every: int, size: int) -> Iterator[tuple[Tensor, StepBlock]]:
    """Every n-th step of the sequence, from its first: (processing steps (n,), their block of one sample).

    A block has at most `size` steps, and only steps of one stretch of `size` steps.
    """
    length = recurrence.length(sample)
    for start, block in recurrence.blocks(sample, size):
        steps = torch.arange(start, start + block.shape[0])
        if every > 1:
            wanted = torch.nonzero(((length - 1 - steps) if recurrence.reverse else steps) % every == 0)[:, 0]
            if not len(wanted):
                continue
            steps, block = steps[wanted], block.only(wanted)
        yield steps, block
