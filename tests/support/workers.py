"""A parent of a real worker that keeps what it hears."""

from __future__ import annotations

import queue
import time
from collections import deque
from typing import Any

from inspector.transport.inbox import Inbox
from inspector.transport.process import WorkerProcess


class Parent:
    """A parent that keeps what it hears."""

    def __init__(self, python: str | None = None, memory: float = 0.0) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.inbox = Inbox()
        self.lines: deque[str] = deque(maxlen=10_000)
        self.worker = WorkerProcess(self.events.put, self.inbox.on_output, self.events.put, python, memory=memory)
        self.worker.start()

    @property
    def output(self) -> list[str]:
        """What was printed, as far as it is kept."""
        while more := self.inbox.lines(500):
            self.lines += [line.text for line in more]
        return list(self.lines)

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
