"""Generated sequences for models that read vectors: noise, an impulse at a step, a constant, a sine."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batching import (
    DEFAULT_STEPS,
    check_length,
    model_dtype,
    number_option,
    pad,
    what_it_reads,
)
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec, Option

MAX_NUMBERS = 1 << 28
KINDS = ("noise", "impulse", "constant", "sine")


class Generated:
    """`value` names the kind; options: steps, at (impulse), value (size), period (sine, in steps), samples."""

    title = "Signal"
    summary = "Noise, an impulse, a constant or a sine, for models that read vectors."
    form = "choice"
    order = 10
    choices = KINDS
    reads = ("vectors",)
    options = (
        Option(name="steps", type="int", default=DEFAULT_STEPS, low=0, high=10_000_000, help="How many steps."),
        Option(name="value", type="float", default=1.0, help="How large it is; for noise, its standard deviation."),
        Option(name="at", type="int", default=0, low=0, help="The step of the impulse.", of_value=("impulse",)),
        Option(name="period", type="float", default=20.0, help="Steps of one period.", of_value=("sine",)),
        Option(name="samples", type="int", default=1, low=1, high=1024, help="Sequences of the batch."),
    )

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """A batch of `samples` sequences (different noise in each). Noise of options left out is what a model without
        examples runs first, which the fields beside it say."""
        if subject.kind == "vectors" and subject.width is None:
            raise InputError(
                f"How many numbers a step of {subject.name} has is not known, so no signal can be made; "
                "give its subject a `width`, or give a sequence."
            )
        if subject.kind != "vectors" or subject.width is None:
            raise InputError(f"{subject.name} reads {what_it_reads(subject)}; generated signals are for vectors.")
        if spec.value not in KINDS:
            raise InputError(f"There is no signal {spec.value!r}; there are {', '.join(KINDS)}.")
        steps, count = int(number_option(spec, "steps", DEFAULT_STEPS)), int(number_option(spec, "samples", 1))
        check_length(max(0, steps))
        if not 1 <= count <= 1024:
            raise InputError(f"A batch of {count} sequences was requested; 1 to 1024 are possible.")
        if steps * count * subject.width > MAX_NUMBERS:
            raise InputError(
                f"{count} × {steps} × {subject.width} numbers were requested; at most {MAX_NUMBERS:,} are possible."
            )
        rows = [_signal(spec, steps, subject.width, seed + i).to(model_dtype(subject)) for i in range(count)]
        return pad(subject, rows, targets=[None] * count, title=f"{spec.value}, {steps} steps", look_at=spec.look_at)


def _signal(spec: InputSpec, steps: int, width: int, seed: int) -> Tensor:
    size = number_option(spec, "value", 1.0)
    if spec.value == "noise":
        return size * torch.randn(steps, width, generator=torch.Generator().manual_seed(seed))
    if spec.value == "constant":
        return torch.full((steps, width), size)
    if spec.value == "sine":
        period = number_option(spec, "period", 20.0)
        if period == 0:
            raise InputError("The period of a sine cannot be 0 steps.")
        return (size * torch.sin(2 * math.pi * torch.arange(steps) / period))[:, None].repeat(1, width)
    at = int(number_option(spec, "at", 0))
    if not 0 <= at < steps:
        raise InputError(f"The impulse was put at step {at}; the sequence has steps 0 to {steps - 1}.")
    signal = torch.zeros(steps, width)
    signal[at] = size
    return signal


INPUTS.register("generated")(Generated())
