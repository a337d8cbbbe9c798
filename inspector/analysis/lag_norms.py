"""How far back gradients reach: the norm of products of step Jacobians by lag, and the lag at which it vanishes or
explodes."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from inspector.analysis.verdict import Verdict


def lag_verdict(logs: npt.NDArray[Any], horizon: float) -> Verdict:
    """The verdict on the mean norm by lag: "kept", "vanished", "exploded" or "unknown".

    `logs` is (lag,): log₁₀ of the mean; `horizon` the lag at which the mean passes 10⁻³ or 10³, NaN where it does not.
    """
    if not math.isfinite(horizon):
        return Verdict("kept", f"within {len(logs) - 1} steps the mean stays between 10⁻³ and 10³")
    at = float(logs[int(horizon)]) if 0 <= horizon < len(logs) else math.nan
    if math.isnan(at):  # the value at the horizon is damaged
        return Verdict(
            "unknown", f"after {int(horizon)} steps the mean has left 10⁻³ to 10³", {"horizon": float(horizon)}
        )
    below = at < 0
    what = "vanished: the mean is below 10⁻³" if below else "exploded: the mean is above 10³"
    return Verdict(
        "vanished" if below else "exploded", f"after {int(horizon)} steps {what}", {"horizon": float(horizon)}
    )
