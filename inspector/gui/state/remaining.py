"""About how long a run still takes: what is left of its work, at the speed of what is done."""

from __future__ import annotations

import time
from collections.abc import Callable

from inspector.records import duration

LEAST_DONE, LEAST_SECONDS = 0.02, 0.5
"""The share that must be done, and the seconds it must have taken, before its speed says anything."""
TOLD_SECONDS = 2.0
"""Less than that is not told."""


class Remaining:
    """Takes reports (done, total) of work in one unit; a report with another total begins another part.

    Counter-example: where the first quantities were estimated too low and the others too high, the time that is told
    is too long until some of those are done.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Nothing is known yet."""
        self._total = self._first = self._share = 0.0
        self._since = self._at = self._clock()

    def take(self, done: float, total: float) -> None:
        """One report; total 0 says nothing."""
        now = self._clock()
        if total != self._total or total <= 0:
            self._total, self._since, self._first = total, now, done / total if total > 0 else 0.0
        self._share, self._at = done / total if total > 0 else 0.0, now

    @property
    def seconds(self) -> float | None:
        """Seconds from now, None where they are not known."""
        ahead, took = self._share - self._first, self._at - self._since
        if self._total <= 0 or ahead < LEAST_DONE or took < LEAST_SECONDS:
            return None
        return max(0.0, took * (1.0 - self._share) / ahead - (self._clock() - self._at))

    def words(self) -> str:
        """What is told: "about 12 s left", or "" where it is not known, or short."""
        left = self.seconds
        return f"about {duration(left)} left" if left is not None and left >= TOLD_SECONDS else ""
