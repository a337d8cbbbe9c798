"""Evenly spaced steps of one sample, where every step would cost too much."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

SINGULAR_BUDGET, EIGENVALUE_BUDGET = 1.4e9, 3.6e8
"""Steps × (state entries)³ that are spent on all singular values and on all eigenvalues of the Jacobians of one layer:
about half a second, and somewhat less than one."""


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


def write_spaced(recurrence: Recurrence, emit: Emitter, sample: int, name: str, steps: Tensor, values: Tensor) -> None:
    """Write values (n, …) of processing steps (n,), a page for each stretch of steps that follow each other."""
    breaks = (torch.nonzero(steps.diff() != 1)[:, 0] + 1).tolist()
    for first, last in zip([0, *breaks], [*breaks, len(steps)], strict=True):
        rows = recurrence.in_order(values[first:last], sample)
        offset = recurrence.sequence_offset(int(steps[first]), last - first, sample)
        emit.page(name, (offset, *(0 for _ in values.shape[1:])), rows)
    if len(steps):
        emit.tell(int(steps[-1]) + 1, recurrence.length(sample))


def singular_stride(length: int, s: int) -> int:
    """n: the singular values of every n-th of `length` Jacobians (s, s) fit their budget."""
    return max(1, math.ceil(length * float(s) ** 3 / SINGULAR_BUDGET))


def eigenvalue_stride(length: int, s: int) -> int:
    """n for eigenvalues: a multiple of that for singular values, so that a step with the one also has the other."""
    other = singular_stride(length, s)
    return max(1, math.ceil(length * float(s) ** 3 / EIGENVALUE_BUDGET / other)) * other
