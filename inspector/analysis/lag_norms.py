"""How far back gradients reach: the norm of products of step Jacobians by lag, and the lag at which it vanishes or
explodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.clipping import percent
from inspector.analysis.verdict import Verdict
from inspector.records import counted

GEOMETRIC = ("jacobian/lag", "path/lag_direct", "path/lag_whole", "path/lag_difference")
"""Signals whose row "mean" was a geometric mean over starts in captures that have no row "median"."""


def centre_of(signal: str, names: Sequence[str]) -> tuple[str, str]:
    """(name of the row that is the middle of a table by lag, what it is): the median, in older captures a mean."""
    if "median" in names:
        return "median", "median"
    return "mean", "geometric mean" if signal in GEOMETRIC else "mean"


def lag_verdict(
    logs: npt.NDArray[Any], horizon: float, centre: str = "median", dead: npt.NDArray[Any] | None = None
) -> Verdict:
    """The verdict on the norms by lag: "kept", "vanished", "exploded" or "unknown".

    `logs` is (lag,): log₁₀ of the middle of the norms over the starts, `centre` which middle that is; `horizon` the lag
    at which it passes 10⁻³ or 10³, NaN where it does not; `dead` (lag,) the share of starts whose product is exactly 0.
    """
    unknown = np.flatnonzero(np.isnan(logs))
    if not math.isfinite(horizon) and len(unknown):
        return Verdict("unknown", f"the {centre} is not known from lag {unknown[0]} on")
    at = int(horizon) if math.isfinite(horizon) else len(logs) - 1
    tail = dead_starts(dead, at)
    if not math.isfinite(horizon):
        return Verdict("kept", f"within {counted(at, 'step')} the {centre} stays between 10⁻³ and 10³{tail}")
    value, numbers = float(logs[at]) if 0 <= at < len(logs) else math.nan, {"horizon": float(horizon)}
    if math.isnan(value):  # the value at the horizon is damaged
        return Verdict("unknown", f"after {counted(at, 'step')} the {centre} has left 10⁻³ to 10³", numbers)
    word, what = ("vanished", "below 10⁻³") if value < 0 else ("exploded", "above 10³")
    return Verdict(word, f"after {counted(at, 'step')} {word}: the {centre} is {what}{tail}", numbers)


def dead_starts(shares: npt.NDArray[Any] | None, lag: int) -> str:
    """The share of dead starts at a lag as the end of a sentence; "" where none is dead or nothing is known."""
    share = float(shares[lag]) if shares is not None and lag < len(shares) else 0.0
    return f"; {percent(share)} of the starts dead (exactly 0) by then" if share > 0 else ""
