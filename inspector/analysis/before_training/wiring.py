"""What the tests of tied weights and of shifted labels say: exact, nothing of the model is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict
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


def _where(shift: int) -> str:
    if shift == 0:
        return "of the very step"
    return f"{counted(abs(shift), 'step')} {'after' if shift > 0 else 'before'} the one"
