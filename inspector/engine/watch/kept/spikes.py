"""Spikes of the gradient norm and values that are not finite: noticed, marked, and kept with what is needed to run them
again."""

from __future__ import annotations

import math
import statistics
from collections import deque

from inspector.engine.watch.gradients import GLOBAL
from inspector.engine.watch.loss import LOSS
from inspector.engine.watch.measure import Found

LAST = 200
LEAST = 20
"""Norms that have to be known before one can be called a spike."""
FACTOR = 10.0
FLOOR = 0.01
"""The least spread relative to the median: norms that hardly differ from each other (a constant loss) have an absolute
deviation near zero, and every change of them would be a spike."""


class Spikes:
    """Judges each recorded iteration by the gradient norm before clipping.

    A spike is a norm more than 10 median absolute deviations above the median of the last 200 recorded ones. It is
    information and not illness: clipped nets that learn well have them too. Something that is not finite is told when
    it begins, not at each iteration that it lasts.
    """

    def __init__(self) -> None:
        self._norms: deque[float] = deque(maxlen=LAST)
        self._broken = False

    def judge(self, found: Found) -> tuple[str, str] | None:
        """(kind of event, sentence) for an iteration that is worth keeping."""
        norm = found.get(GLOBAL, {}).get(0, found.get(GLOBAL, {}).get(1))
        loss = found.get(LOSS, {}).get(0)
        broken = [name for name, one in (("loss", loss), ("gradient norm", norm)) if one is not None and _bad(one)]
        before, self._broken = self._broken, bool(broken)
        if broken:
            what = " and the ".join(broken)
            return None if before else ("non-finite", f"the {what} became NaN or infinite")
        if norm is None:
            return None
        said = self._spike(norm)
        self._norms.append(norm)
        return said

    def _spike(self, norm: float) -> tuple[str, str] | None:
        if len(self._norms) < LEAST:
            return None
        middle = statistics.median(self._norms)
        spread = statistics.median([abs(one - middle) for one in self._norms])
        distance = (norm - middle) / max(spread, FLOOR * middle, 1e-300)
        if distance <= FACTOR:
            return None
        return (
            "spike",
            f"gradient norm {norm:.3g}, median {middle:.3g} ({distance:.0f} median absolute deviations above)",
        )


def _bad(value: float) -> bool:
    return not math.isfinite(value)
