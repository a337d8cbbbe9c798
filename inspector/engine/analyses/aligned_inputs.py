"""The model's inputs at the steps of one recurrence, where its step axis is that of an input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN

PADDING = "{} reads padding too, so its steps cannot be assigned to inputs."
SEVERAL = "A step of {} reads several steps of {} ({} to {}), so none of them is its own input."
NOTHING = "Some steps of {} read no step of the input, so they cannot be assigned to inputs."
OTHERS = "{} runs over other steps than the input, so it cannot be assigned to inputs."

UNSEEN = (
    "{} has as many steps as the input, but which step of it each one reads was not seen (a convolution before the "
    "recurrence, say), so it cannot be assigned to inputs."
)
SHIFTED = "Step {} of {} reads step {} of {}, so its steps are not those of the input."


def input_of(trace: Trace, recurrence: Recurrence) -> str:
    """The name of the input whose steps a recurrence reads; the primary one where that was not recorded."""
    reads = recurrence.reads
    known = reads is not None and not reads.nothing and reads.input in trace.batch
    return reads.input if reads is not None and known else trace.batch.primary


def vocabulary_at(trace: Trace, recurrence: Recurrence) -> Sequence[str] | None:
    """The labels of the ids of that input, if it has any."""
    name, subject = input_of(trace, recurrence), trace.subject
    if name == trace.batch.primary:
        return subject.vocabulary
    return subject.declared[name].vocabulary if name in subject.declared else None


def aligned_inputs(trace: Trace, recurrence: Recurrence, *, computed: bool = False) -> Tensor:
    """The model's inputs at the recurrence's steps in processing order, (t, b) ids or (t, b, …).

    Where it was recorded which step of an input each step read, that one's. Raises Unsupported where the recurrence
    does not run over the steps of an input (a decoder, a subsampled layer), or reads several at once.
    `computed`: what is returned at steps that compute no gate does not matter.
    """
    held = slice(recurrence.base, recurrence.base + recurrence.states.shape[1])
    name = input_of(trace, recurrence)
    one = trace.batch.named[name]
    assert one.tensor is not None
    inputs, lengths = one.tensor[held].transpose(0, 1), one.lengths[held]
    steps = torch.arange(recurrence.steps, device=inputs.device)[:, None].expand(-1, inputs.shape[1])
    if recurrence.reverse:
        own = recurrence.lengths.to(inputs.device)
        steps = (own[None] - 1 - steps).clamp(min=0)
    other = recurrence.domain != STEP_DOMAIN or name != trace.batch.primary
    if other and _one_each(trace, recurrence, computed=computed):
        assert recurrence.reads is not None
        steps = torch.from_numpy(recurrence.reads.low).to(inputs.device).clamp(min=0)[steps]
        real = torch.arange(recurrence.steps)[:, None] < recurrence.lengths.cpu()
        if bool((steps.cpu() >= lengths.cpu())[real].any()):
            raise Unsupported(PADDING.format(recurrence.place))
    elif not _in_order(trace, recurrence):
        raise Unsupported(_why(trace, recurrence))
    return inputs[steps, torch.arange(inputs.shape[1], device=inputs.device)[None]]


def _one_each(trace: Trace, recurrence: Recurrence, *, computed: bool) -> bool:
    """Whether it was recorded that each step read exactly one step of one input; or each that computes a gate."""
    reads = recurrence.reads
    if reads is None or reads.nothing or len(reads) != recurrence.steps or reads.input not in trace.batch:
        return False
    if reads.single:
        return True
    read = torch.from_numpy(reads.high) >= 0
    return computed and bool((reads.low == reads.high).all()) and bool((read | _idle(recurrence)).all())


def _idle(recurrence: Recurrence) -> Tensor:
    """(t,) True at steps that compute no gate."""
    idle = recurrence.cell.idle
    none = torch.zeros(recurrence.steps, dtype=torch.bool)
    names = [name for name in recurrence.cell.gate_names if not name.startswith(ACTIVATION)]
    return torch.stack([idle.get(name, none).cpu() for name in names]).all(0) if names else none


def _why(trace: Trace, recurrence: Recurrence) -> str:
    """Why steps cannot be assigned to inputs."""
    reads, place = recurrence.reads, recurrence.place
    if reads is None or reads.nothing:
        alike = recurrence.steps == trace.batch.first.steps and _lengths_agree(trace, recurrence)
        return (UNSEEN if alike and recurrence.domain != ANSWER_DOMAIN else OTHERS).format(place)
    name = "the input" if reads.input == trace.batch.primary else reads.input
    several = (reads.low != reads.high).nonzero()[0]
    if len(several):
        at = int(several[0])
        first, last = int(reads.low[at]), int(reads.high[at])
        return SEVERAL.format(place, name, first, last)
    if bool((reads.high < 0).any()):
        return NOTHING.format(place)
    moved = (reads.low != range(len(reads.low))).nonzero()[0]
    return SHIFTED.format(moved[0], place, reads.low[moved[0]], name) if len(moved) else OTHERS.format(place)


def _lengths_agree(trace: Trace, recurrence: Recurrence) -> bool:
    """Whether every sequence has as many steps in the recurrence as in the primary input."""
    held = slice(recurrence.base, recurrence.base + recurrence.states.shape[1])
    return torch.equal(trace.batch.lengths[held].cpu(), recurrence.lengths.cpu())


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
