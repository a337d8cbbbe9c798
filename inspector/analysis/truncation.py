"""How many steps truncated backpropagation through time needs, and its cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.verdict import Verdict

Array = npt.NDArray[Any]


def truncation_verdict(ks: Array, cost: Array, smallest: Sequence[tuple[str, float]]) -> Verdict:
    """The smallest K within each tolerance: "enough" where every tolerance is met by some K, else "short".

    `ks` (k,) are the truncation lengths that were tried, `cost` (k,) the share of the untruncated cost, `smallest` the
    tolerances as text with the smallest K within each, NaN for none.
    """
    parts: list[str] = []
    for text, k in smallest:
        if math.isfinite(k):
            share = float(np.interp(k, ks, cost))
            parts.append(f"within {text}: K = {k:.0f}, {100 * share:.0f} % of the cost")
        else:
            parts.append(f"within {text}: no K up to {ks[-1]:.0f}")
    met = all(math.isfinite(k) for _, k in smallest)
    return Verdict("enough" if met else "short", f"error {'; '.join(parts)}", dict(smallest))
