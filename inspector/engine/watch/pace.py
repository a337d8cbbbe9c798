"""When the next iteration is recorded: every n-th, or as often as a share of the wall time allows."""

from __future__ import annotations

import math
import time

MOST_CREDIT = 3
"""Recorded iterations that may follow each other after a pause (of validation, for example), which earned time."""


class Pace:
    """Counts what watching costs and decides which iterations are recorded.

    With `every` these are the first iteration and every multiple of it. Without, the time that the watcher has taken
    stays below `share` of the time since it began: after each recorded iteration the next one is as far away as its
    expected cost needs.
    """

    def __init__(self, every: int | None, share: float) -> None:
        self.every, self.share = every, share
        self.began = time.monotonic()
        self.spent = 0.0
        self._credited = 0.0
        self._before = 0.0
        self._cost = 0.0
        self._last = 0
        self._at = self.began

    @property
    def seconds(self) -> float:
        """Since watching began."""
        return time.monotonic() - self.began

    @property
    def cost(self) -> float:
        """The share of the time so far that the watcher took."""
        return self.spent / max(self.seconds, 1e-9)

    def after(self, iteration: int) -> int:
        """The next iteration to record, after `iteration` was recorded. At least the one after it."""
        if self.every is not None:
            return (iteration // self.every + 1) * self.every
        now = time.monotonic()
        self._learn(iteration, now)
        allowed = self.share * (now - self.began)
        self._credited = max(self._credited, allowed - self.spent - MOST_CREDIT * self._cost)
        missing = self.spent + self._credited + self._cost - allowed
        if missing <= 0:
            return iteration + 1
        each = max((now - self._at) / max(1, iteration - self._last), 1e-9)
        self._last, self._at = iteration, now
        return iteration + max(1, math.ceil(missing / self.share / each))

    def _learn(self, iteration: int, now: float) -> None:
        """The cost of a recorded iteration, from what was spent since the last one; the first is mostly start-up."""
        since, self._before = self.spent - self._before, self.spent
        self._cost = since if iteration <= 2 else 0.5 * (self._cost + since)

    def waited(self, seconds: float) -> None:
        """The loop was paused: no time of the training's passed, and watching did not cost it."""
        self.began += seconds
        self._at += seconds
        self.spent -= seconds

    def allows(self, seconds: float) -> bool:
        """Whether something that takes so long may be done now."""
        return self.every is not None or self.spent + seconds <= self.share * self.seconds
