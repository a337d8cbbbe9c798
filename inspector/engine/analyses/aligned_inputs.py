"""The model's inputs at the steps of one recurrence, where its step axis is that of the input."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import STEP_DOMAIN


def aligned_inputs(trace: Trace, recurrence: Recurrence) -> Tensor:
    """The model's inputs at the recurrence's steps in processing order, (t, b) ids or (t, b, …).

    Where it was recorded which step of the input each step read, that one's. Raises Unsupported where the recurrence
    does not run over the input's own steps (a decoder, a subsampled layer), or reads several at once.
    """
    held = slice(recurrence.base, recurrence.base + recurrence.states.shape[1])
    inputs, lengths = trace.batch.inputs[held].transpose(0, 1), trace.batch.lengths[held]
    steps = torch.arange(recurrence.steps, device=inputs.device)[:, None].expand(-1, inputs.shape[1])
    if recurrence.reverse:
        own = recurrence.lengths.to(inputs.device)
        steps = (own[None] - 1 - steps).clamp(min=0)
    if recurrence.domain != STEP_DOMAIN and _one_each(trace, recurrence):
        assert recurrence.reads is not None
        steps = torch.from_numpy(recurrence.reads.low).to(inputs.device)[steps]
        real = torch.arange(recurrence.steps)[:, None] < recurrence.lengths.cpu()
        if bool((steps.cpu() >= lengths.cpu())[real].any()):
            raise Unsupported(f"{recurrence.place} reads padding too, so its steps cannot be assigned to inputs.")
    elif not _in_order(trace, recurrence):
        raise Unsupported(
            f"{recurrence.place} runs over other steps than the input, so it cannot be assigned to inputs."
        )
    return inputs[steps, torch.arange(inputs.shape[1], device=inputs.device)[None]]


def _one_each(trace: Trace, recurrence: Recurrence) -> bool:
    """Whether it was recorded that each step read exactly one step of the primary input."""
    reads = recurrence.reads
    known = reads is not None and reads.input == trace.batch.primary and len(reads) == recurrence.steps
    return known and reads is not None and reads.single


def _in_order(trace: Trace, recurrence: Recurrence) -> bool:
    """Whether the recurrence's steps are those of the primary input, from the first one on."""
    first = trace.batch.first
    held = slice(recurrence.base, recurrence.base + recurrence.states.shape[1])
    if recurrence.domain != first.axis or recurrence.domain != STEP_DOMAIN or first.steps < recurrence.steps:
        return False
    lengths, own = first.lengths[held].cpu(), recurrence.lengths.cpu()
    reads = recurrence.reads
    if reads is not None and not reads.nothing:  # it may leave the last steps out
        return reads.input == trace.batch.primary and reads.in_order(first.steps) and bool((own <= lengths).all())
    return torch.equal(lengths, own)
