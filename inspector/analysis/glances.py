"""What a picture says at a glance, as a sentence with its numbers, where no verdict is defined on it.

These describe and do not judge: whether something is wrong is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from inspector.analysis.clipping import percent
from inspector.records import counted

Floats = npt.NDArray[np.float64]
Named = Sequence[tuple[str, Floats, Floats]]
EDGE = 20
"""Parts of a curve over training: its first and its last twentieth say where it began and where it is."""


def course(name: str, x: Floats, y: Floats) -> str:
    """Where a curve over training began and where it is, its least, and what is not finite."""
    fine = np.isfinite(y)
    if not fine.any():
        return f"{name} is never a finite number" if len(y) else f"{name} has no numbers"
    said = f"{name} {number(float(y[fine][0]))} at iteration {x[fine][0]:,g}"
    if fine.sum() > 1:
        if np.ptp(y[fine]) == 0:
            where = "throughout" if fine.all() else "where it is finite"
            return f"{name} {number(float(y[fine][0]))} {where}" + _broken(x, y, "iteration")
        few = max(1, int(fine.sum()) // EDGE)
        first, last = (number(float(np.median(part))) for part in (y[fine][:few], y[fine][-few:]))
        least = int(np.flatnonzero(fine)[np.argmin(y[fine])])
        of = f" (medians of {few:,} at each end)" if few > 1 else ""
        said = f"{name} from {first} to {last}{of}, least {number(float(y[least]))} at iteration {x[least]:,g}"
    return said + _broken(x, y, "iteration")


def extremes(lines: Named, unit: str = "", word: str = "step") -> str:
    """The least and the largest number of some curves by step, and where they are; what is 0 or not finite."""
    ends, zeros, broken, count = [], 0, 0, 0
    for name, x, y in lines:
        fine = np.flatnonzero(np.isfinite(y))
        zeros, broken, count = zeros + int(np.sum(y[fine] == 0)), broken + len(y) - len(fine), count + len(y)
        for at in (fine[np.argmin(y[fine])], fine[np.argmax(y[fine])]) if len(fine) else ():
            ends.append((float(y[at]), float(x[at]), name))
    if not ends:
        return "no finite number" if count else "no numbers"
    low, high = min(ends), max(ends)
    of = f" {unit}" if unit not in ("", "1") else ""
    several = len({name for _, _, name in ends}) > 1
    said = [
        f"{number(value)}{of} at {word} {at:,g}{f' ({name})' if several else ''}" for value, at, name in (low, high)
    ]
    told = said[0] if low[0] == high[0] else f"from {said[0]} to {said[1]}"
    told += f"; exactly 0 at {counted(zeros, word)}" if 0 < zeros < count - broken else ""
    return told + (f"; not finite at {counted(broken, word)}" if broken else "")


def mean_of(name: str, x: Floats, y: Floats, unit: str, word: str = "step") -> str:
    """The mean of a curve by step and its largest number."""
    fine = np.isfinite(y)
    if not fine.any():
        return f"{name}: no finite number"
    at = int(np.flatnonzero(fine)[np.argmax(y[fine])])
    of = f" {unit}" if unit not in ("", "1") else ""
    said = f"mean {number(float(y[fine].mean()))}{of}, largest {number(float(y[at]))} at {word} {x[at]:,g}"
    return (said if fine.sum() > 1 else f"{number(float(y[at]))}{of}") + _broken(x, y, word)


def share_above(lines: Named, limit: float, what: str) -> str:
    """In what share of the steps curves lie above a limit, and their median."""
    values = np.concatenate([y for _, _, y in lines]) if lines else np.zeros(0)
    fine = values[np.isfinite(values)]
    if not len(fine):
        return f"{what}: no finite number"
    return f"{what} median {number(float(np.median(fine)))}, above {limit:g} in {percent(float(np.mean(fine > limit)))}"


def smallest_and_largest(names: Sequence[str], values: Floats, what: str) -> str:
    """Of one number by name, such as a median over a training: which has the least, which the most."""
    fine = np.flatnonzero(np.isfinite(values))
    if not len(fine):
        return f"{what}: no finite number"
    low, high = (int(fine[choose(values[fine])]) for choose in (np.argmin, np.argmax))
    if low == high:
        return f"{what} {number(float(values[low]))} ({names[low]})"
    return f"{what} from {number(float(values[low]))} ({names[low]}) to {number(float(values[high]))} ({names[high]})"


def number(value: float) -> str:
    """Three digits, with a real minus; in powers of ten only where it is very large or small."""
    text = f"{value:.3g}"
    if 1000 <= abs(value) < 1e6:
        text = f"{float(text):,.0f}"
    return text.replace("-", "−")


def _broken(x: Floats, y: Floats, word: str) -> str:
    """What is said of numbers that are not finite; "" where all are."""
    broken = np.flatnonzero(~np.isfinite(y))
    if not len(broken):
        return ""
    lasting = len(broken) == len(y) - broken[0]
    where = f"from {word} {x[broken[0]]:,g} on" if lasting else f"first at {word} {x[broken[0]]:,g}"
    return f"; not finite {where}"
