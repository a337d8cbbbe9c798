"""What a step of training takes at this length and at others, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict
from inspector.analysis.sizes import bytes_text
from inspector.records import counted

FURTHER = 10
"""The sentence tells of so many times the steps that were measured at most."""
LINEAR = 0.8
"""Every step costs something, so time that grows with a smaller exponent is not yet that of the steps."""
CALLING = " Most of the time of steps this short is that of calling operations, whatever the length: expect more of it."

SHRINKING = (
    " Its time is not estimated: more steps took less time than fewer, because other programs ran meanwhile or because "
    "calling operations takes most of it. Measure again, with more steps."
)


def lengths_verdict(read: Readings) -> Iterator[Verdict]:
    """At most one sentence, of the channel of `trial/other_lengths`."""
    table = read.array("other_lengths")
    if table is None:
        yield from read.refused("other lengths")
        return
    name, own = read.channel("other_lengths"), read.scalar("other_lengths/steps")
    at = int(np.flatnonzero(table[0] == own)[0])
    _, seconds, least, most, kept = table[:, at]
    said = (
        f"A step of training with {counted(round(own), 'step')} takes {_seconds(seconds)} ({_seconds(least)} to "
        f"{_seconds(most)}) and keeps {bytes_text(kept)} for its backward pass; parameters, gradients and Adam's "
        f"moments take {bytes_text(read.scalar('other_lengths/fixed'))} besides."
    )
    if table.shape[1] > 1:
        far = round(FURTHER * own)
        said += _at(table, far)
    yield Verdict("other lengths", "fact", said, float(seconds), name)


def _at(table: Numbers, far: int) -> str:
    """What a step of training takes at `far` steps, as a sentence; its time where that grew with the length."""
    # other programs make steps longer and never shorter: the shortest ones tell how time grows
    (least, most), sizes = exponents(table[0], table[2]), square(table[0], table[4], far)
    memory = _exponents(table[0], table[4])
    said = f" With {counted(far, 'step', ',')}, if it goes on as from {table[0, 0]:.0f} to {table[0, -1]:.0f}: "
    polynomial = f"the memory of {far:,} is that of a polynomial through the longest three"
    if least < 0:
        return f"{said}{bytes_text(sizes)} (memory grows as T^{memory} between these lengths; {polynomial}).{SHRINKING}"
    times = further(table[0], table[[2, 3]], far)
    said += (
        f"{_seconds(times[0])} to {_seconds(times[1])}, {bytes_text(sizes)} (between these lengths time grows as "
        f"T^{_exponents(table[0], table[2])}, memory as T^{memory}; {polynomial})."
    )
    return said + CALLING if most < LINEAR else said


def exponents(steps: Numbers, values: Numbers) -> tuple[float, float]:
    """(least, most) slope of log value by log steps: between the two longest lengths, and from the shortest to the
    longest. NaN where a value is 0."""
    if len(steps) < 2 or not (values > 0).all():
        return math.nan, math.nan
    x, y = np.log(steps), np.log(values)
    slopes = (y[-1] - y[-2]) / (x[-1] - x[-2]), (y[-1] - y[0]) / (x[-1] - x[0])
    return float(min(slopes)), float(max(slopes))


def further(steps: Numbers, rows: Numbers, far: float) -> tuple[float, float]:
    """(least, most) value at other steps: from the longest length of each row on, by either slope of the first row, or
    by a polynomial of the first row, since what grows with T² is hidden at first by what does not."""
    slopes = [0.0 if math.isnan(one) else one for one in exponents(steps, rows[0])]
    found = [float(row[-1]) * (far / float(steps[-1])) ** slope for row in rows for slope in slopes]
    found.append(square(steps, rows[0], far))
    return min(found), max(found)


def square(steps: Numbers, values: Numbers, far: float) -> float:
    """The value at other steps of a + bT + cT² through the longest three lengths, c ≥ 0 (a line through the longest two
    where it would be below 0, as where windows fill): exact for what each step keeps and each pair of steps.

    Newton's interpolation with divided differences.
    """
    if len(steps) < 2:
        return float(values[-1])
    x, y = [float(one) for one in steps[-3:]], [float(one) for one in values[-3:]]
    slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    curve = 0.0 if len(x) < 3 else max(0.0, (slope - (y[-2] - y[-3]) / (x[-2] - x[-3])) / (x[-1] - x[-3]))
    return max(y[-1], y[-1] + (far - x[-1]) * (slope + curve * (far - x[-2])))


def _exponents(steps: Numbers, values: Numbers) -> str:
    low, high = exponents(steps, values)
    return f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"


def _seconds(value: float) -> str:
    return f"{1e3 * value:.2g} ms" if value < 0.1 else f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
