"""The step axes beside that of the primary input, those of the output and of the other inputs, and the layers that run
over them.

A layer runs over the axis whose modules it lies in; else over the one that has as many steps as the layer, where
neither the primary input nor another axis has as many (what a decoder is given to say counts as what it says).
Counter-example: a layer that skips every second step of a source of 12 beside a target of 6 is taken for one of the
target's; `modules` of the target can list its layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.model.batch import Batch
from inspector.engine.trace.spoken import spoken
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN, Axis

UNKNOWN = "position"
"""Label domain of steps whose axis is not known."""


@dataclass(frozen=True, slots=True)
class StepAxis:
    """One axis of the run.

    Attributes:
        domain: its name, and that of its labels; steps: with padding; lengths: (b,) real steps.
        modules: those that are declared to run over it.
        grid: (rows, columns) where the steps are the patches of a picture.
    """

    domain: str
    steps: int
    lengths: Tensor
    modules: tuple[str, ...] = ()
    grid: tuple[int, int] | None = None

    def length(self, sample: int) -> int:
        """Real steps of one sample."""
        return int(self.lengths[sample])

    def record(self, sample: int) -> Axis:
        """The record of the axis; steps that do not fill the grid are one line."""
        length = self.length(sample)
        if self.grid is not None and math.prod(self.grid) == length:
            return Axis(name=self.domain, title=title_of(self.domain), length=length, layout="grid", grid=self.grid)
        return Axis(name=self.domain, title=title_of(self.domain), length=length)


def title_of(domain: str) -> str:
    """The title of an axis: an input's name alone would not say what is counted."""
    return domain if domain.split()[-1] in ("step", "patch", UNKNOWN) else f"{domain} step"


def primary_axis(batch: Batch) -> StepAxis | None:
    """The axis of the primary input; None where it has no steps."""
    first = batch.first
    return StepAxis(first.axis, first.steps, first.lengths, grid=first.grid) if first.axis else None


def axes_beside(trace: Trace) -> list[StepAxis]:
    """The output's axis, those of inputs that are sequences of their own, and those of pictures cut into patches."""
    found: list[StepAxis] = []
    answer, subject = trace.answer, trace.subject
    if answer is not None:
        own = () if not answer.source else subject.modules_over(answer.source)
        found.append(StepAxis(ANSWER_DOMAIN, answer.steps, answer.lengths, (*names_in(subject.decoder), *own)))
    for name, one in trace.batch.others():
        if answer is None or answer.source != name:
            found.append(StepAxis(one.axis, one.steps, one.lengths, subject.modules_over(name), one.grid))
    for name, one in trace.batch.named.items():
        if one.grid is not None and not one.axis and one.tensor is not None:
            count = math.prod(one.grid) + len(one.before)
            found.append(StepAxis(patches_of(name), count, torch.full_like(one.lengths, count), grid=one.grid))
    return found


def patches_of(name: str) -> str:
    """The axis of the patches of a picture, with the positions in front of them."""
    return f"{name} patch"


def axis_of_input(trace: Trace, name: str) -> StepAxis | None:
    """The axis along which the steps of an input lie; None where it has none, or there is no such input."""
    one = trace.batch.named.get(name)
    if one is None or not one.axis:
        return None
    if trace.answer is not None and trace.answer.source == name:
        return next((axis for axis in axes_beside(trace) if axis.domain == ANSWER_DOMAIN), None)
    return StepAxis(one.axis, one.steps, one.lengths, trace.subject.modules_over(name), one.grid)


def names_in(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def axis_at(trace: Trace, place: str, steps: int) -> StepAxis | None:
    """The axis of a place that runs over so many steps; None for the primary input's, and where it is not known."""
    axes = axes_beside(trace)
    declared = declared_axis(trace, place)
    if declared is not None:
        return declared
    if of_primary(trace, steps):
        return None
    fitting = [axis for axis in axes if axis.steps == steps and not axis.modules]
    said = spoken(trace) if len(fitting) > 1 and any(axis.domain == ANSWER_DOMAIN for axis in fitting) else None
    if said is not None:  # what a decoder is given to say has as many steps as it says: they are named by what it says
        fitting = [axis for axis in fitting if axis.domain != trace.batch.named[said.name].axis]
    return fitting[0] if len(fitting) == 1 else None


def declared_axis(trace: Trace, place: str) -> StepAxis | None:
    """The axis among whose `modules` the subject lists a place; None where it lists it nowhere."""
    return next((axis for axis in axes_beside(trace) if trace.subject.lies_in(place, axis.modules)), None)


def of_primary(trace: Trace, steps: int) -> bool:
    """Whether so many steps are those of the primary input, with padding or without."""
    return steps in (trace.batch.steps, int(trace.batch.lengths.max()))
