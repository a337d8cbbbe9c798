"""Padding in front of a sequence, in a sentence: on which side, how much, and what it moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict, share
from inspector.records import counted


def left_padding_verdict(read: Readings, values: Numbers) -> Iterator[Verdict]:
    """One sentence, of the channel of `structure/left_padding`."""
    name, number = read.channel("left_padding"), float(np.nanmax(values, initial=0.0))
    amount, masked = round(read.scalar("left_padding/steps", 0.0)), read.scalar("left_padding/masked") > 0
    given = f"The sequence was given with {counted(amount, 'step')} of padding on the left"
    rounding = read.scalar("left_padding/rounding", 0.0)
    if unclear := [*read.unclear("left_padding", number, rounding)]:
        yield from unclear
        return
    if number <= rounding:
        yield Verdict("left_padding", "holds", f"{given}, on which no output at a real step depends.", number, name)
        return
    step = int(np.nanargmax(values[0]))
    by = "a mask says so" if masked else "an id that the model declares as padding"
    along = read.run.channel(name, read.frame).dims[-1] == "step"
    where = f"the output at step {step}" if along else "the output"
    said = f"{given} ({by}): without it {where} changes by {share(number)} of the largest."
    yield Verdict("left_padding", "fault", said, number, name, steps=(step,) if along else ())
