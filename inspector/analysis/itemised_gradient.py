"""The sum of the items of backpropagation through time, and how much of the gradient is immediate."""

from __future__ import annotations

import math

from inspector.analysis.verdict import Verdict


def sum_verdict(error: float) -> Verdict:
    """Whether the items add up to autograd's gradient: "checked", with the relative difference, or "unknown"."""
    if not math.isfinite(error):
        return Verdict("unknown", "the gradient is not finite, so the sum of all items could not be checked")
    sentence = f"all items add up to autograd's gradient (relative difference {error:.1e})"
    return Verdict("checked", sentence, {"error": error})


def immediate_part(total: float, immediate: float, cosine: float) -> Verdict:
    """Norms of the whole gradient and of its part at lag 0, and the cosine between them (NaN where it is not known)."""
    text = f"total gradient {total:.3g}, immediate part alone (lag 0) {immediate:.3g}"
    text += f", cosine of the two {cosine:.2f}" if math.isfinite(cosine) else ""
    return Verdict("described", text, {"total": total, "immediate": immediate, "cosine": cosine})
