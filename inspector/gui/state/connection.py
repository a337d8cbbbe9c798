"""The worker of a session: it is started, ended without blocking, and its records wait for the next tick."""

from __future__ import annotations

import threading
import time
from typing import Any

from inspector.gui.state.exchange import Make, Worker
from inspector.records import Log
from inspector.transport.inbox import MOST_LINES, Inbox

TICK_LINES = 500
FLOOD_SECONDS = 0.1
"""Seconds between two reads of printed lines, where there are more than one read takes: no user can read them that
fast."""
ENDING_PATIENCE = 0.5
"""Seconds that a worker which hangs gets after each of: a Quit request, SIGTERM, SIGKILL."""
CLOSING_PATIENCE = 1.0
"""The same where the window is closed: time to finish a capture properly."""
LAST_PATIENCE = 4.0
"""Seconds that `wait_for_end` waits at most."""


class Connection:
    """Every method is called in one thread; the worker's threads only fill a queue."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self.worker: Worker | None = None
        self.state = "not started"
        """"not started", "starting", "ready" or "ended"."""
        self._inbox = Inbox()
        self._printed_at = 0.0
        self._left: list[Log] = []
        """Records of a worker before another replaced it."""
        self._ending: list[threading.Thread] = []
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether there is a worker that takes requests."""
        return self.worker is not None and self.worker.alive

    def start(self) -> bool:
        """Start a worker where none is alive, and never after `close`; returns whether that was the case."""
        if self.alive or self._closed:  # what is under way while the window closes may still ask
            return False
        self.state = "starting"
        self._left += [*self._inbox.lines(MOST_LINES), *self._inbox.begun()]
        self._inbox.close()
        self._inbox = inbox = Inbox()  # records of the previous worker must not be taken for this one's
        self.worker = self._make(inbox.on_record, inbox.on_output, inbox.on_exit)
        self.worker.start()
        return True

    def send(self, request: Any) -> None:
        """Send a request; without a worker it is dropped."""
        if self.worker is not None:
            self.worker.send(request)

    def note(self, line: Log) -> None:
        """Put a line among what the worker prints, from any thread."""
        self._inbox.on_record(line)

    def end(self) -> None:
        """End a worker that hangs, which takes about a second: the window does not wait for it."""
        self._begin_to_end(ENDING_PATIENCE)

    def _begin_to_end(self, patience: float) -> None:
        """The thread is no daemon: the interpreter waits for it, so no worker outlives the program."""
        worker, self.worker = self.worker, None
        if worker is not None:
            name = "worker-ending"
            thread = threading.Thread(target=worker.close, args=(patience,), name=name, daemon=False)
            self._ending = [*(other for other in self._ending if other.is_alive()), thread]
            thread.start()

    def close(self) -> None:
        """Begin to end the worker; `wait_for_end` waits until it has ended. The records of its end are not wanted."""
        self._closed = True
        self._inbox.close()
        self._begin_to_end(CLOSING_PATIENCE)

    def wait_for_end(self, seconds: float = LAST_PATIENCE) -> bool:
        """Whether all workers that are being ended have ended within so many seconds."""
        end = time.monotonic() + seconds
        for thread in self._ending:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._ending)

    def record(self) -> Any:
        """The next record of the worker, or None."""
        return self._inbox.record()

    def lines(self) -> list[Log]:
        """Some of the printed lines; where there are many, not at every tick."""
        left, self._left = self._left, []
        now = time.monotonic()
        if now < self._printed_at:
            return left
        lines = self._inbox.lines(TICK_LINES)
        self._printed_at = now + (FLOOD_SECONDS if len(lines) >= TICK_LINES else 0.0)
        return left + lines

    def begun(self) -> tuple[Log, ...]:
        """The lines that the worker has begun to print and not ended."""
        return tuple(self._inbox.begun())
