"""The effect that clipping by a threshold had, or would have had, during training."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from inspector.analysis.verdict import Verdict
from inspector.records import counted


def clipped_steps(norms: npt.NDArray[Any], threshold: float) -> tuple[int, int]:
    """(training steps whose gradient norm is above the threshold or not finite, all of them)."""
    return int((~(norms <= threshold)).sum()), len(norms)


def clipping_verdict(norms: npt.NDArray[Any], threshold: float, used: float) -> Verdict:
    """Share of training steps that a threshold clips: "none", "some" or "most" (more than half).

    `used` is the threshold of the training itself, NaN where it is not known.
    """
    over, every = clipped_steps(norms, threshold)
    share = over / every if every else 0.0
    done = f"; it used {used:.3g}" if math.isfinite(used) else ""
    sentence = f"training: ‖g‖ > {threshold:.3g} in {over:,} of {counted(every, 'step', ',')} ({percent(share)}){done}"
    return Verdict("most" if share > 0.5 else "some" if over else "none", sentence, {"share": share})


def percent(share: float) -> str:
    """A share as text: 0 and 100 % only where it is exactly that."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.3g} %"
