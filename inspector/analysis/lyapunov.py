"""The meaning of the largest Lyapunov exponent for changes of the state."""

from __future__ import annotations

import math

from inspector.analysis.verdict import Verdict


def lyapunov_verdict(largest: float, steps: int) -> Verdict:
    """The verdict on λ₁ (nats a step) over so many steps: "unknown", "erased", "lasting", "chaotic" or "forgetting".

    "lasting" where |λ₁| · steps < 1: a change has not grown or shrunk by a factor of e within the run, so its sign is
    not reliable.
    """
    numbers = {"largest": largest}
    if math.isnan(largest):
        return Verdict("unknown", "λ₁ is not known", numbers)
    if math.isinf(largest):
        return Verdict("erased", "every change of the state is mapped exactly to zero (λ₁ = −∞)", numbers)
    shown = f"{largest:.3g}".replace("-", "−")
    if abs(largest) * max(1, steps) < 1:
        sentence = f"λ₁ = {shown} nats a step, so changes last longer than these {steps} steps"
        return Verdict("lasting", sentence, numbers)
    if largest > 0:
        doubling = math.log(2) / largest
        sentence = f"chaotic: λ₁ = {largest:.3g} nats a step, a change of the state doubles in {doubling:.3g} steps"
        return Verdict("chaotic", sentence, {**numbers, "doubling_steps": doubling})
    sentence = f"forgets over 1/|λ₁| = {1 / -largest:.3g} steps: λ₁ = {shown} nats a step"
    return Verdict("forgetting", sentence, {**numbers, "memory_steps": 1 / -largest})
