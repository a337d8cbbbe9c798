"""What the tests of tied weights, shifted labels and accumulated gradients say: exact, nothing of the model is
replaced."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict, share
from inspector.records import counted

SHIFTS = (-2, -1, 0, 1, 2, 3)
FEWEST, OTHERS = 8, 0.9
"""Targets that are needed; a share from which another shift fits as well, as in sequences of one symbol."""


def tied_verdict(read: Readings, table: Numbers) -> Iterator[Verdict]:
    """One sentence for each pair of (statistic, pair)."""
    name = read.channel("tied")
    names = read.run.labels(read.run.channel(name, read.frame).domain("pair"), read.frame)
    for pair, (shared, equal, declared) in zip(names, table.T, strict=False):
        if shared:
            yield Verdict("tied", "holds", f"{pair} are one parameter.", 0.0, name)
            continue
        why = "the configuration ties them" if declared else "they are equal in every entry"
        said = f"{pair} are two parameters, though {why}: a step of training moves each by its own gradient alone."
        yield Verdict("tied", "fault", said, float(equal), name)


def labels_verdict(read: Readings, shares: Numbers) -> Iterator[Verdict]:
    """At most one sentence of (value,) shares by shift."""
    name, count = read.channel("labels"), int(read.scalar("labels/targets", 0.0))
    whole = [shift for shift, one in zip(SHIFTS, shares, strict=True) if one == 1.0]
    near = [shift for shift, one in zip(SHIFTS, shares, strict=True) if one >= OTHERS]
    if count < FEWEST or len(whole) != 1 or len(near) != 1:
        return
    (shift,) = whole
    told = f"All {count:,} targets are the input {_where(shift)} that their scores are computed at"
    if shift == 1:
        yield Verdict("labels", "holds", f"{told}: the next one.", 1.0, name)
    elif shift == 0:
        more = "a model that reads the input copies it; shift the targets by one step to predict the next input."
        yield Verdict("labels", "fault", f"{told}: {more}", 0.0, name)
    elif shift > 1:
        more = f"{counted(shift - 1, 'input')} in between {'is' if shift == 2 else 'are'} never asked for at that step"
        yield Verdict("labels", "fault", f"{told}; {more}: targets may be shifted twice.", float(shift), name)
    else:
        yield Verdict("labels", "fact", f"{told}: inputs that were read are asked for.", float(shift), name)


def accumulation_verdict(read: Readings, table: Numbers) -> Iterator[Verdict]:
    """One sentence of (statistic, part): the number of passes whose gradient is furthest from that of one."""
    name, rounding = read.channel("accumulation"), read.scalar("accumulation/rounding", 0.0)
    passes = read.run.channel(name, read.frame).labels["part"]
    error, scale, direction = table
    sequences = f"{int(read.scalar('accumulation/sequences', 0.0))} sequences"
    if not np.isfinite(error).all():
        broken = passes[int(np.flatnonzero(~np.isfinite(error))[0])]
        yield Verdict(
            "accumulation", "fault", f"In {broken} the gradient is NaN or infinite, in one it is not.", np.inf, name
        )
    elif not (error > rounding).any():
        said = f"Accumulated in {' or '.join(passes)}, the gradient of these {sequences} is that of one pass."
        yield Verdict("accumulation", "holds", said, float(error.max()), name)
    else:
        at = int(error.argmax())
        told = f"Accumulated in {passes[at]}, the gradient of these {sequences} is not that of one pass: "
        if direction[at] <= rounding:
            told += f"it is {scale[at]:.3g} times as large. Each pass has to be divided by what the whole batch is."
        else:
            told += f"it is off by {share(float(error[at]))}, and not in its size alone. {_why(read, rounding)}"
        yield Verdict("accumulation", "fault", told, float(error[at]), name)


def _why(read: Readings, rounding: float) -> str:
    """What makes the gradient another one: known of batch normalisation, without which it was tried; else likely."""
    left = read.scalar("accumulation/batch_norm", np.nan)
    if left <= rounding:
        return "It is batch normalisation, which reads the batch of each pass: in evaluation mode both are the same."
    if read.scalar("accumulation/uneven", 0.0) > 0:
        return "Sequences have different lengths: a mean over each pass would weigh the targets of short ones more."
    norms = ", or the model normalises over its batch" if np.isnan(left) else ""
    return f"Passes are weighed unevenly{norms}."


def _where(shift: int) -> str:
    if shift == 0:
        return "of the very step"
    return f"{counted(abs(shift), 'step')} {'after' if shift > 0 else 'before'} the one"
