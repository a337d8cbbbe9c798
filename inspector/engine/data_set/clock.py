"""What the parts of a run of many sequences take, in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

READ, CALLS, NUMBERS, CHECK, WRITE = (
    "sequences/reading",
    "sequences/calls of the model",
    "sequences/numbers",
    "sequences/check of batches",
    "sequences/writing",
)


class Clock:
    """Seconds by part; while an inner part runs, the outer one stands still, so that the sum is the time taken."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._part = ""
        self._since = time.perf_counter()

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """The time until the end of the context belongs to this part."""
        before = self._part
        self._turn(part)
        try:
            yield
        finally:
            self._turn(before)

    def _turn(self, part: str) -> None:
        now = time.perf_counter()
        if self._part:
            self.seconds[self._part] = self.seconds.get(self._part, 0.0) + now - self._since
        self._part, self._since = part, now
