"""A window in this process, with a heartbeat that tells how long its thread was held up, and by what of its own.

A gap is the time between two beats of a timer of 5 ms. The processor time of the window's thread within a gap is the
window's own work, whatever else the machine does.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEAT_MS = 5


@dataclass
class Gaps:
    """Of some work: (seconds, seconds of the thread's processor time) between two beats."""

    each: list[tuple[float, float]] = field(default_factory=list)

    def told(self) -> str:
        """In words, for a table."""
        walls, own = (sorted(one[at] for one in self.each) for at in (0, 1))
        late = own[min(len(own) - 1, int(len(own) * 0.999))]
        return (
            f"longest gap {walls[-1] * 1000:.0f} ms, most processor time in one {own[-1] * 1000:.0f} ms, p99.9 "
            f"{late * 1000:.0f} ms, {len(own):,} beats, load of {os.getloadavg()[0]:.0f}"
        )

    @property
    def most(self) -> float:
        """Most processor time in one gap."""
        return max((own for _, own in self.each), default=0.0)


class BeatingWindow:
    """A window as its command opens it, without a screen; settings and runs of its own."""

    def __init__(self, folder: Path) -> None:
        for name in ("CONFIG", "DATA", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        from PySide6.QtCore import QTimer
        from PySide6.QtWidgets import QApplication

        from inspector.gui import app

        self.application = QApplication.instance() or QApplication(["inspector"])
        self.window: Any = app.make_window()
        self.window.resize(1280, 800)
        self.window.show()
        gc.disable()
        app.begin(self.window, [], demo=False)
        self.ticks = 0
        self._gaps: Gaps | None = None
        self._last = (time.monotonic(), time.thread_time())
        self._timer = QTimer(self.window, interval=BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        self.until(lambda: self.window.panels.made and self.session.catalog is not None, 180, "the start of the window")

    @property
    def session(self) -> Any:
        """What the window asks for, and what is answered."""
        return self.window.session

    def _beat(self) -> None:
        now = (time.monotonic(), time.thread_time())
        if self._gaps is not None:
            self._gaps.each.append((now[0] - self._last[0], now[1] - self._last[1]))
        self._last = now

    @contextmanager
    def beats(self) -> Iterator[Gaps]:
        """The gaps of what is done inside."""
        self.rest(0.1)
        found = self._gaps = Gaps()
        self._beat()
        found.each.clear()
        try:
            yield found
        finally:
            self.rest(0.05)
            self._gaps = None

    def until(self, done: Callable[[], object], seconds: float, what: str = "") -> None:
        """Let the window live until something is so. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"{what or 'it'} took more than {seconds:.0f} s: {self.session.sentence}")
            self.application.processEvents()
            time.sleep(0.001)

    def rest(self, seconds: float) -> None:
        """Let it live for so long."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, seconds + 60)

    def close(self) -> None:
        """Its end."""
        self._timer.stop()
        self.window.close()
        self.session.wait_for_end()
