"""What of a difference of two runs a panel can show: what was subtracted, or else the second run alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspector.capture import Difference
from inspector.records import Channel

APART = frozenset({
    "bptt", "clipping", "fixed_point", "health", "influence", "lyapunov", "memory", "opener", "spectrum", "trajectory",
    "truncation",
})  # fmt: skip
"""Kinds of tables, spectra and verdicts of one run: numbers of two runs do not subtract to anything that is read."""
SAID = "edited run only"
WHY = "What this panel shows belongs to one run: it does not subtract. Choose frame 0 to see the run as it was."


def readable(source: Any, accepts: Callable[[Channel], bool]) -> tuple[Any, int | None]:
    """(what to read, None), or of a difference with something of one run that is accepted (its capture, the frame)."""
    if isinstance(source, Difference) and any(c.kind in APART and accepts(c) for c in source.capture.channels.values()):
        return source.capture, source.second
    return source, None
