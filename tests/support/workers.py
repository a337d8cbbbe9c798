"""A parent of a real worker that keeps what it hears."""

from __future__ import annotations

import queue
import time
from typing import Any

from inspector.transport.process import WorkerProcess


class Parent:
    """A parent that keeps what it hears."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.output: list[str] = []
        self.worker = WorkerProcess(self.events.put, lambda _s, line: self.output.append(line), self.events.put)
        self.worker.start()

    def wait(self, *kinds: type[Any], seconds: float = 60.0) -> Any:
        """The next event of some kinds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                event = self.events.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(event, kinds):
                return event
        raise AssertionError(f"no {kinds} within {seconds} s; output: {self.output[-5:]}")
