"""A log of another tool as the window shows it: opened in the background, followed while it grows, run by run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspector.capture import CancelledError, Capture, CaptureError, LogView, open_log
from inspector.gui.state.switch_interval import giving_way

REFRESH_SECONDS = 0.5
"""Seconds after which a log is looked at for more."""
MEGABYTE = 1 << 20


class FollowedLog:
    """A LogView that reads like a Capture: everything that is not here is the view's."""

    def __init__(self, view: LogView, whole: LogView | None = None) -> None:
        self.view = view
        self.whole = view if whole is None else whole
        """The view of all runs, where this is one of several."""
        self.readers = 0
        """How many threads read it (state/aside.py): meanwhile it does not grow."""
        self._looked = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def of_run(self, run: str | None) -> FollowedLog:
        """One of the runs, None for all of them together. Raises CaptureError."""
        return FollowedLog(self.whole if run is None else self.whole.one(run), self.whole)

    @contextmanager
    def noting(self) -> Iterator[set[tuple[str, int]]]:
        """What is damaged in a log is damaged as a whole, so what is read is not noted."""
        yield set()

    def changed(self) -> bool:
        """Whether it is time to look for more."""
        if self.readers or time.monotonic() - self._looked < REFRESH_SECONDS:
            return False
        self._looked = time.monotonic()
        return True


def as_log(capture: Capture | None) -> FollowedLog | None:
    """What is shown, where it is a log."""
    shown: object = capture
    return shown if isinstance(shown, FollowedLog) else None


class LogOpening:
    """Reads a log in a thread: `finished` becomes true, and then either `view` or `problem` is there."""

    def __init__(self, path: Path, why: str = "") -> None:
        """`why` it was taken for a log, where that is a question."""
        self.path, self.why = path, why
        self.view: LogView | None = None
        self.problem = ""
        self.read = self.size = 0
        """Bytes that were read, and bytes in all; 0 while that is not known."""
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._open, name="log", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        try:
            with giving_way():
                view = open_log(self.path, progress=self._note, cancelled=self._cancelled.is_set)
            if view.channels:
                self.view = view
            else:
                self.problem = next(
                    iter(view.damaged), f"{self.path.name} has no numbers by step, so there is no curve."
                )
        except CancelledError as problem:
            self.problem = str(problem)
        except (CaptureError, OSError) as problem:
            self.problem = str(problem)
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"{self.path.name} could not be read: {type(fault).__name__}: {fault}"

    def _note(self, read: int, size: int) -> None:
        self.read, self.size = read, size

    @property
    def name(self) -> str:
        """What is read, for sentences."""
        return self.path.name

    @property
    def shown(self) -> str:
        """What is said once it was read."""
        return f"{self.name} is shown{': ' if self.why else ''}{self.why}."

    @property
    def finished(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to end."""
        self._cancelled.set()

    def close(self) -> None:
        """Ask it to end and wait for that."""
        self.cancel()
        self._thread.join(2.0)

    @property
    def sentence(self) -> str:
        """How far it is."""
        if not self.size:
            return f"Reading {self.path.name} …"
        return f"Reading {self.path.name}: {self.read / MEGABYTE:,.0f} of {self.size / MEGABYTE:,.0f} MB"
