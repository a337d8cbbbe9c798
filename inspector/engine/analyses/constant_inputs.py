"""The constant inputs at which fixed points of a recurrence are sought: mean, zero, and those that the sequence has.

A layer above the first receives a different input at every step, also where the model's own input is the same; its
constant input is the mean over those steps, and the label says so. A recorded step uses what it was given at one of its
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.aligned_inputs import aligned_inputs, vocabulary_at
from inspector.engine.analyses.fixed_point_search import step_and_jacobian
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.autonomous import step_at, step_at_mean
from inspector.engine.recurrent.traced.cells.base import RecordedStep
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence
from inspector.engine.trace.emitter import to_numpy
from inspector.engine.trace.trace import Recurrence, Trace

MOST = 6
"""Inputs of the sequence that are used, the most frequent ones, beside mean and zero."""
SHORT = 3
"""How many numbers of an input a label writes out."""
MEAN, ZERO = "mean input", "zero input"
ENTERING = "zero where the input enters"
"""Of a recorded step that reads something computed of the input before (W x + b): that is 0, and not the input."""


@dataclass(frozen=True, slots=True)
class ConstantInput:
    """F(s, x*) for one x*: `step` gives F (n, s) and ∂F/∂s (n, s, s) at states (n, s) of `dtype`."""

    label: str
    step: Callable[[Tensor], tuple[Tensor, Tensor]]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Alike:
    """Processing steps (n,) at which the model is given the same input, and the name of that input."""

    name: str
    steps: Tensor


def constant_inputs(trace: Trace, recurrence: Recurrence, steps: Tensor) -> list[ConstantInput]:
    """Every constant input, of those that the processing steps (n,) of the selected sample have.

    Raises Unsupported where the step cannot be run from other states.
    """
    kinds = list(alike(trace, recurrence, steps))
    if not isinstance(recurrence.cell, RecordedStep):
        return list(_of_cell(recurrence, trace.look_at, steps, kinds))
    if recurrence.cell.depth:
        raise Unsupported(
            f"Each step of {recurrence.place} is a layer, not one map repeated in time, so no fixed points are sought."
        )
    if not isinstance(recurrence, ReplayRecurrence):
        raise Unsupported(
            f"The steps of {recurrence.place} are known through autograd's graph only and cannot be run from other "
            "states, so no fixed points are found."
        )
    given = _reads_the_input(trace, recurrence)
    return list(_of_recording(recurrence, trace.look_at, steps, kinds, given=given))


def _reads_the_input(trace: Trace, recurrence: Recurrence) -> bool:
    """Whether a recorded step reads the model's own numbers, and nothing that was computed of them before."""
    try:
        own = aligned_inputs(trace, recurrence)
    except Unsupported:
        return False
    return own.shape == recurrence.x.shape and torch.equal(own.to(recurrence.x.dtype), recurrence.x)


def _of_cell(recurrence: Recurrence, sample: int, steps: Tensor, kinds: list[Alike]) -> Iterator[ConstantInput]:
    cell, x = recurrence.cell.in_float64(), recurrence.x[:, sample - recurrence.base]
    x = x.double() if cell is not recurrence.cell else x

    def constant(label: str, value: Tensor) -> ConstantInput:
        return ConstantInput(label, partial(step_and_jacobian, cell, value), value.dtype)

    mean = x[steps].mean(0)
    found = [(MEAN, mean), (ZERO, torch.zeros_like(mean))]
    for kind in kinds:
        rows = x[kind.steps]
        exact = bool((rows == rows[0]).all())
        found.append((kind.name if exact else f"mean at {kind.name}", rows[0] if exact else rows.mean(0)))
    for label, value in once(found):
        yield constant(label, value)


def once(found: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
    """Each value once, under its first name and the others in brackets, but for the number that a name repeats."""
    kept: list[tuple[list[str], Tensor]] = []
    for label, value in found:
        names = next((names for names, known in kept if torch.equal(known, value)), None)
        if names is None:
            kept.append(([label], value))
        else:
            names.append(label)
    return [(names[0] if len(names) == 1 else f"{names[0]} ({', '.join(names[1:])})", value) for names, value in kept]


def _of_recording(
    recurrence: ReplayRecurrence, sample: int, steps: Tensor, kinds: list[Alike], *, given: bool
) -> Iterator[ConstantInput]:
    column = sample - recurrence.base
    entering = recurrence.x[:, column]
    width = entering.shape[1]
    seen: list[Tensor] = []
    for label, scale in ((MEAN, 1.0), (ZERO if given else ENTERING, 0.0)) if width else ((MEAN, 1.0),):
        value = scale * entering[steps].double().mean(0)
        if width and any(torch.equal(value, known) for known in seen):
            continue
        try:
            one = step_at_mean(recurrence, steps, column, scale=scale)
        except Unsupported:
            continue  # the steps of the sequence are still there
        seen.append(value)
        yield ConstantInput(label, one, one.dtype)
    for kind in kinds:
        first, rows = int(kind.steps[0]), entering[kind.steps]
        if width and bool((rows == rows[0]).all()) and any(torch.equal(rows[0].double(), known) for known in seen):
            continue
        exact = rows.shape[1] > 0 and bool((rows == rows[0]).all())
        at = f"step {_shown(recurrence, sample, first)}"
        label = kind.name if exact or kind.name == at else f"{kind.name} at {at}"
        step = step_at(recurrence, first, column)
        yield ConstantInput(label, step, step.dtype)


def alike(trace: Trace, recurrence: Recurrence, steps: Tensor) -> Iterator[Alike]:
    """The most frequent of the model's inputs with their steps; evenly spaced steps where few inputs occur twice."""
    column, steps = trace.look_at - recurrence.base, recurrence.in_order(steps, trace.look_at)
    try:
        given = aligned_inputs(trace, recurrence)[steps, column]
        tokens = given.dim() == 1 and not given.is_floating_point()
    except Unsupported:
        given, tokens = recurrence.x[steps, column], False
    rows = given.reshape(len(given), -1)
    which = numbered(rows)
    count = torch.bincount(which)
    if not tokens and 2 * len(count) > len(rows):
        for at in torch.linspace(0, len(rows) - 1, min(MOST, len(rows))).round().long():
            yield Alike(f"step {_shown(recurrence, trace.look_at, int(steps[at]))}", steps[at : at + 1])
        return
    for number in torch.sort(count, descending=True, stable=True).indices[:MOST].tolist():
        own = steps[which == number]
        row = rows[which == number][0]
        if tokens:
            name = f"'{_token(vocabulary_at(trace, recurrence), int(row))}'"
        elif len(row) <= SHORT:
            name = f"input {', '.join(f'{float(value):.3g}' for value in row)}"
        else:
            name = f"step {_shown(recurrence, trace.look_at, int(own[0]))}"
            name += f" and {len(own) - 1} like it" if len(own) > 1 else ""
        yield Alike(name, own)


def numbered(rows: Tensor) -> Tensor:
    """(n,) a number for each row (n, i), the same for equal ones, in the order in which they come first.

    Rows without entries are all different.
    By their bytes: sorting 100,000 rows number by number takes seconds.
    """
    if not rows.shape[1]:
        return torch.arange(len(rows))
    plain = to_numpy(rows + 0)  # −0.0 + 0 is 0.0
    whole = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1])))[:, 0]
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[first.argsort()] = np.arange(len(first))
    return torch.from_numpy(place[which.reshape(-1)])


def _token(vocabulary: Sequence[str] | None, number: int) -> str:
    return str(vocabulary[number]) if vocabulary is not None and number < len(vocabulary) else str(number)


def _shown(recurrence: Recurrence, sample: int, t: int) -> int:
    """The sequence step of processing step t."""
    return recurrence.sequence_offset(t, 1, sample)
