"""Outputs that do not depend on the newest input that they may read, and do on the one before it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict

FEWEST = 4
"""Inputs that were replaced, with two outputs behind each: fewer may be missed by the draw that replaced them."""
REMEDY = (
    "Shift once: step t of what is given is what step t − 1 says, so that of the answer the last entry alone is left "
    "out, and one start sign stands in front of it."
)


def late_verdict(read: Readings) -> Iterator[Verdict]:
    """At most one sentence, of the (source, step) changes of `structure/causal`, where the model predicts its input."""
    table = read.array("causal")
    if table is None or not read.scalar("causal/next_token", 0.0) > 0:
        return
    ahead = 1 if read.scalar("causal/behind", 1.0) == 0 else 0
    rounding = read.scalar("causal/rounding", 0.0)
    newest, before = _behind(table, ahead), _behind(table, ahead + 1)
    both = np.isfinite(newest) & np.isfinite(before)
    if both.sum() < FEWEST or (newest[both] > rounding).any() or not (before[both] > rounding).all():
        return
    if np.tril(np.nan_to_num(table), ahead - 1).max(initial=0.0) > rounding:
        return  # it reads what comes later, which is another fault
    domain = read.run.channel(read.channel("causal"), read.frame).domain("source")
    what = "what it is given" if ahead else "its input"
    said = (
        f"No output depends on the entry of {what} just before what it is to say, and all that were tested depend on "
        f"the entry before that ({int(both.sum())} replaced{f' of {domain}' if ahead and domain else ''}): "
        f"{'what a decoder is given' if ahead else 'the input'} may be shifted twice."
    )
    yield Verdict("labels", "fault", said, 2.0, read.channel("causal"), remedy=REMEDY)


def _behind(table: Numbers, steps: int) -> Numbers:
    """The change of the output so many steps after each replaced input; NaN where there is none."""
    found = np.full(len(table), np.nan)
    diagonal = np.diagonal(table, steps)
    found[: len(diagonal)] = diagonal
    return found
