"""The model's inputs at the steps of one recurrence, where its step axis is that of the input."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import STEP_DOMAIN


def aligned_inputs(trace: Trace, recurrence: Recurrence) -> Tensor:
    """The model's inputs at the recurrence's steps in processing order, (t, b) ids or (t, b, …).

    Raises Unsupported where the recurrence does not run over the input's own steps (a decoder, a subsampled layer).
    """
    held = slice(recurrence.base, recurrence.base + recurrence.states.shape[1])
    inputs, lengths = trace.batch.inputs[held].transpose(0, 1), trace.batch.lengths[held]
    elsewhere = recurrence.domain != trace.batch.first.axis or recurrence.domain != STEP_DOMAIN
    if elsewhere or not torch.equal(lengths.cpu(), recurrence.lengths.cpu()) or inputs.shape[0] < recurrence.steps:
        raise Unsupported(
            f"{recurrence.place} runs over other steps than the input, so it cannot be assigned to inputs."
        )
    steps = torch.arange(recurrence.steps, device=inputs.device)[:, None].expand(-1, inputs.shape[1])
    if recurrence.reverse:
        steps = (lengths.to(inputs.device)[None] - 1 - steps).clamp(min=0)
    return inputs[steps, torch.arange(inputs.shape[1], device=inputs.device)[None]]
