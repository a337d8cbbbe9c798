"""One piece of work over what is shown, done in a thread of its own, whose results are taken one by one.

The thread opens a capture once more, since a capture is read by one thread only. A log is read as it is: while that
goes on the window does not look for more of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.turns import give_way
from inspector.gui.state.followed_log import FollowedLog
from inspector.gui.state.switch_interval import giving_way

Work = Callable[[Any], Iterator[Any]]
"""From an open view to results, one after the other."""


class Aside:
    """Work that has begun. `problem` says as one sentence why it ended early, "" where it did not."""

    def __init__(self, view: Any, work: Work, name: str) -> None:
        self.problem = ""
        self._view, self._work = view, work
        self._results: deque[Any] = deque()
        self._stopped = threading.Event()
        if isinstance(view, FollowedLog):
            view.readers += 1
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether there will be no more results than those that can be taken now."""
        return not self._thread.is_alive()

    def take(self) -> list[Any]:
        """The results since the last call."""
        found = []
        while self._results:
            found.append(self._results.popleft())
        return found

    def stop(self) -> None:
        """Ask it to end after the result that it works on; `close` waits for that."""
        self._stopped.set()

    def close(self) -> None:
        """End it, and wait."""
        self.stop()
        self._thread.join()

    def wait(self) -> None:
        """Wait until it has ended by itself."""
        self._thread.join()

    def _run(self) -> None:
        view = self._view
        try:
            with giving_way():
                self._read(view)
        except (CaptureError, OSError, ValueError, MemoryError) as problem:
            self.problem = str(problem) or type(problem).__name__
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"{type(fault).__name__}: {fault}"
        finally:
            if isinstance(view, FollowedLog):
                view.readers -= 1

    def _read(self, view: Any) -> None:
        if type(view) is Capture:
            with open_capture(view.path) as own:
                self._go_through(own)
        else:
            self._go_through(view)

    def _go_through(self, view: Any) -> None:
        for result in self._work(view):
            if self._stopped.is_set():
                return
            self._results.append(result)
            give_way()
