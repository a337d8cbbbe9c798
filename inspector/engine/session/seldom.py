"""Which reports of progress are sent: computing tells more than a window or a line of text can show."""

from __future__ import annotations

import time
from collections.abc import Callable

PROGRESS_SECONDS = 0.05
"""Between two reports of the same thing, and between two of another in the long run."""
AT_ONCE = 20
"""Reports of another thing each that may follow each other at once: quantities that are short or refused."""


class Seldom:
    """What is being done is told at once, how far it is every now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked, self._credit = clock(), float(AT_ONCE)
        self._at, self._text = self._asked - PROGRESS_SECONDS, ""

    def passes(self, done: float, total: float, text: str) -> bool:
        """Whether this report is sent; that all is done always is."""
        now = self._clock()
        self._credit = min(float(AT_ONCE), self._credit + (now - self._asked) / PROGRESS_SECONDS)
        self._asked = now
        another = text != self._text and self._credit >= 1
        if not (another or now - self._at >= PROGRESS_SECONDS or done >= total > 0):
            return False
        self._credit -= text != self._text
        self._at, self._text = now, text
        return True
