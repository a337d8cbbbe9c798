"""Which axis of a tensor that a model made on its way is the steps', and which the sequences'.

Sequences are recognised by their number, steps by theirs. What fits nothing is rejected with its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.trace.step_axes import UNKNOWN
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN

FITS_NOT = (
    "{} has shape {}; expected (batch, step, …) or (batch, …) with {} sequences of {} steps, so it is not known which "
    "of its numbers belong to the sequence that is shown"
)
TWO_ALIKE = (
    "{} has shape {}, whose first two axes are both as long as the batch of {} sequences, so it is not known which of "
    "them is the batch: run another number of sequences"
)


@dataclass(frozen=True, slots=True)
class Axes:
    """The sizes of a run: sequences, padded steps, real steps of the selected one, those of its answer (0 without)."""

    size: int
    steps: int
    length: int
    look_at: int
    domain: str
    answer: int = 0
    time_major: bool = False


@dataclass(frozen=True, slots=True)
class Laid:
    """Numbers of the selected sequence: (steps, units…) over a step axis, or (units…) where `domain` is ""."""

    values: Tensor
    domain: str


def axes_of(trace: Trace) -> Axes:
    """The sizes of a run."""
    batch, answer = trace.batch, trace.answer
    return Axes(
        batch.size, batch.steps, batch.length, batch.look_at, batch.first.axis,
        0 if answer is None else answer.steps, batch.first.batch_dim == 1,
    )  # fmt: skip


def laid_out(what: str, values: Sequence[Tensor], axes: Axes) -> Laid:
    """The selected sequence's part of a tensor, or of one a call stacked over the calls. Raises Unsupported."""
    if len({tuple(one.shape) for one in values}) > 1:
        raise Unsupported(f"{what} has another shape at every call, so its calls are no steps.")
    if len(values) == 1:
        return _whole(what, values[0], axes)
    first = values[0]
    if not first.dim() or first.shape[0] != axes.size:
        raise Unsupported(FITS_NOT.format(what, tuple(first.shape), axes.size, axes.steps) + ".")
    return _cut(torch.stack([one[axes.look_at] for one in values]), axes)


def constant(value: Tensor, axes: Axes) -> bool:
    """Whether a tensor is the same for all sequences, as a prior may be: at most one axis, or others of length 1."""
    leading = value.shape[:-1]
    if value.dim() == 1:
        return value.shape[0] != axes.size
    return not value.dim() or (axes.size > 1 and all(size == 1 for size in leading))


def _whole(what: str, value: Tensor, axes: Axes) -> Laid:
    shape = tuple(value.shape)
    if shape[:2] == (axes.size, axes.size) and axes.size > 1 and not (axes.time_major and axes.steps == axes.size):
        raise Unsupported(TWO_ALIKE.format(what, shape, axes.size) + ".")
    batch_first, time_first = (axes.size, axes.steps), (axes.steps, axes.size)
    if shape[:2] == time_first and axes.domain:
        return _cut(value[:, axes.look_at], axes)
    if shape[:2] == batch_first and axes.domain:
        return _cut(value[axes.look_at], axes)
    if shape[:1] == (axes.size,):
        own = value[axes.look_at]
        return _cut(own, axes) if len(shape) > 2 else Laid(own, "")
    if axes.size == 1 and shape[:1] == (axes.steps,) and axes.domain:
        return _cut(value, axes)  # all steps of one sequence in a row
    raise Unsupported(FITS_NOT.format(what, shape, axes.size, axes.steps) + ".")


def _cut(values: Tensor, axes: Axes) -> Laid:
    """Real steps only, over the axis that has as many."""
    if len(values) == axes.steps and axes.domain:
        return Laid(values[: axes.length], axes.domain)
    return Laid(values, ANSWER_DOMAIN if len(values) == axes.answer else UNKNOWN)
