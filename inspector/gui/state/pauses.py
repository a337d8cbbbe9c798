"""When a thread that works beside the window pauses: for a moment again and again, and while the window is at work.

The window tells of each turn of its event loop (`beat`). Where that does not come the window computes, paints or waits
for Python's lock, and what works beside it would take half of the lock's time and, on two cores that share one unit,
much of the computing as well: a window that has 50 ms of work would answer nothing for 100.
"""

from __future__ import annotations

import time
from collections.abc import Callable

EACH_SECONDS, MOMENT_SECONDS = 0.001, 0.00005
"""After how long a thread pauses, and for how long: a thread that waits for the lock wakes up within."""
LATE_SECONDS = 0.024
"""A beat that has not come for so long is late; the window ticks every 16 ms."""
LONGEST_SECONDS, LOOK_SECONDS = 0.06, 0.001
"""How long a thread waits for one late beat at most: the window itself may wait for the thread."""


class Beats:
    """When the event loop of the window turned last; 0 where no window does."""

    def __init__(self) -> None:
        self.at = 0.0


WINDOW = Beats()


def beat() -> None:
    """The event loop of the window turns."""
    WINDOW.at = time.monotonic()


def no_more_beats() -> None:
    """The window is closed."""
    WINDOW.at = 0.0


class Pause:
    """The pauses of one thread; called between small pieces of its work."""

    def __init__(
        self,
        window: Beats = WINDOW,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._window, self._clock, self._sleep = window, clock, sleep
        self._last = clock()
        self._beat = self._until = 0.0

    def __call__(self, long: bool) -> None:
        """Pause, where it is time to; for a moment only, unless it may be `long`."""
        if self._clock() - self._last < EACH_SECONDS:
            return
        self._sleep(MOMENT_SECONDS)
        while long and self._waits():
            self._sleep(LOOK_SECONDS)
        self._last = self._clock()

    def _waits(self) -> bool:
        """Whether the beat of the window is late, and was not waited for long enough."""
        now, at = self._clock(), self._window.at
        if not at or now - at <= LATE_SECONDS:
            return False
        if at != self._beat:
            self._beat, self._until = at, now + LONGEST_SECONDS
        return now < self._until
