"""The meaning of the largest Lyapunov exponent for changes of the state."""

from __future__ import annotations

import math

from inspector.analysis.verdict import Verdict
from inspector.records import counted

CERTAIN = 2.0
"""Standard errors that λ₁ must be away from 0 before its sign is told."""


def lyapunov_verdict(largest: float, steps: int, error: float = math.nan) -> Verdict:
    """The verdict on λ₁ (nats a step) over so many steps: "unknown", "erased", "undecided", "lasting", "chaotic" or
    "forgetting".

    `error` is the standard error of λ₁, NaN where it is not known (older captures); within two of them its sign is
    "undecided".

    "lasting" where |λ₁| · steps < 1: a change has not grown or shrunk by a factor of e within the run, so its sign is
    not reliable.
    """
    numbers = {"largest": largest}
    if math.isnan(largest):
        return Verdict("unknown", "λ₁ is not known", numbers)
    if math.isinf(largest):
        return Verdict("erased", "every change of the state is mapped exactly to zero (λ₁ = −∞)", numbers)
    spread = f" ± {error:.2g}" if math.isfinite(error) else ""
    shown = f"{largest:.3g}".replace("-", "−") + spread
    if math.isfinite(error):
        numbers["error"] = error
    if math.isfinite(error) and abs(largest) <= CERTAIN * error:
        sentence = f"λ₁ = {shown} nats a step is within two standard errors of 0: chaotic or contracting is not decided"
        return Verdict("undecided", sentence, numbers)
    if abs(largest) * max(1, steps) < 1:
        sentence = f"λ₁ = {shown} nats a step, so changes last longer than these {counted(steps, 'step')}"
        return Verdict("lasting", sentence, numbers)
    if largest > 0:
        doubling = math.log(2) / largest
        sentence = (
            f"chaotic: λ₁ = {shown} nats a step, a change of the state doubles in {counted(doubling, 'step', '.3g')}"
        )
        return Verdict("chaotic", sentence, {**numbers, "doubling_steps": doubling})
    sentence = f"forgets over 1/|λ₁| = {counted(1 / -largest, 'step', '.3g')}: λ₁ = {shown} nats a step"
    return Verdict("forgetting", sentence, {**numbers, "memory_steps": 1 / -largest})
