"""A heartbeat of Qt's event loop: how long it is between two of its beats, and how much of that the thread computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Gap = tuple[float, float, float, str]
"""When it began, how long it was, the CPU time of the thread within it (all in seconds), and during what."""
BEAT_MS = 5
CALM, CALM_BEATS = 0.012, 6
"""CPU seconds below which a beat shows a window at rest, and how many of these in a row mean that it is."""


class Beats:
    """Gaps by phase. Actions begin directly after a beat, in a window that is at rest: what was done before is not
    counted for them, however little of the machine this process gets."""

    def __init__(self, application: Any) -> None:
        from PySide6.QtCore import QTimer

        self.application, self.later = application, QTimer.singleShot
        self.gaps: dict[str, list[Gap]] = {}
        self.phase, self.during = "start", ""
        self._last, self._calm = (time.monotonic(), time.thread_time()), 0
        self._timer = QTimer(interval=BEAT_MS)
        self._timer.timeout.connect(self.beat)

    def begin(self) -> None:
        """The first gap begins now."""
        self._last = time.monotonic(), time.thread_time()
        self._timer.start()

    def beat(self) -> None:
        """A gap ends, and the next one begins."""
        now, spent = time.monotonic(), time.thread_time()
        own = spent - self._last[1]
        self.gaps.setdefault(self.phase, []).append((self._last[0], now - self._last[0], own, self.during))
        self._calm = self._calm + 1 if own < CALM else 0
        self._last = time.monotonic(), time.thread_time()

    def until(self, done: Callable[[], object], seconds: float) -> None:
        """Answer events until something is so."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"{self.phase}: not within {seconds:g} s")
            self.application.processEvents()
            time.sleep(0.001)

    def rest(self, seconds: float) -> None:
        """Answer events for a while."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, seconds + 1)

    def settle(self, seconds: float = 20.0) -> None:
        """Answer events until nothing is computed any more; a window that never rests is left as it is."""
        self._calm = 0
        end = time.monotonic() + seconds
        self.until(lambda: self._calm >= CALM_BEATS or time.monotonic() > end, seconds + 1)

    def act(self, during: str, action: Callable[[], object], pause: float = 0.0) -> None:
        """Do something as a person would who sees that the window is at rest, and wait until it is again."""
        self.settle()
        self.during = during
        self.beat()
        action()
        self.rest(pause)
        self.settle()
