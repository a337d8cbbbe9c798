"""Reading and computing beside the window: work in small steps, in a thread with a capture of its own.

A capture is read by one thread only, so the thread opens the file once more. Of several tasks the most urgent one gets
the next step, so that what is asked for last does not wait for what takes long. The thread ends when nothing is left.
What is no capture in a file (a comparison of two) is computed where it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.turns import give_way
from inspector.gui.state.switch_interval import giving_way

Steps = Callable[[Any], Iterator[None]]
"""What is done with a capture, step by step."""


@dataclass(slots=True, eq=False)
class Task:
    """Work that was asked for.

    Attributes:
        steps: what is done; key: what for, so that it is not asked for twice.
        urgency: the larger, the earlier.
        done: whether it has ended; error: why without a result, as one sentence.
    """

    key: Hashable
    steps: Steps
    urgency: int = 0
    done: bool = False
    error: str = ""
    _running: Iterator[None] | None = None

    @property
    def begun(self) -> bool:
        """Whether a step of it was done."""
        return self._running is not None

    def step(self, view: Any) -> None:
        """The next step."""
        try:
            if self._running is None:
                self._running = self.steps(view)
            next(self._running)
        except StopIteration:
            self.done = True
        except (CaptureError, OSError, ValueError, MemoryError) as problem:
            self.error, self.done = str(problem) or type(problem).__name__, True
        if self.done:
            self._running = None


class SideReader:
    """Does tasks over one capture at a time; another capture ends those of the one before."""

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._path = Path()
        self._steps = self._seen = 0
        self.problem = ""
        """Why the last task that failed had no result, as one sentence; "" where none did."""

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self._tasks)

    def news(self) -> bool:
        """Whether anything was done since the last call."""
        before, self._seen = self._seen, self._steps
        return self._seen != before

    def do(self, view: Any, task: Task, *, at_once: bool) -> None:
        """Do it now, or in the thread where the view is a capture in a file."""
        if at_once or type(view) is not Capture:
            while not task.done:
                task.step(view)
            return
        with self._changed:
            if view.path != self._path:
                self._tasks, self._path, self.problem = [], view.path, ""
            self._tasks = [*(one for one in self._tasks if one.key != task.key), task]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="maps", daemon=True)
                self._thread.start()

    def forget(self, key: Hashable) -> None:
        """Give up a task."""
        with self._changed:
            self._tasks = [one for one in self._tasks if one.key != key]

    def close(self) -> None:
        """Give up everything, and wait for the step in progress."""
        with self._changed:
            self._tasks = []
            thread = self._thread
        if thread is not None:
            thread.join()

    def wait(self) -> None:
        """Wait until nothing is left to do: a figure in a file shows the whole."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        with giving_way():
            self._do_all()

    def _do_all(self) -> None:
        capture: Capture | None = None
        try:
            while True:
                with self._changed:
                    if not self._tasks:
                        self._thread = None
                        return
                    task, path = max(self._tasks, key=lambda one: one.urgency), self._path
                if capture is None or capture.path != path:
                    capture = _opened(capture, path, task)
                if capture is not None:
                    if not task.begun:
                        capture.refresh()  # the window may have seen more of a run that goes on
                    task.step(capture)
                    give_way()
                self._steps += 1
                if task.done:
                    self.problem = task.error or self.problem
                    with self._changed:
                        self._tasks = [one for one in self._tasks if one is not task]
        finally:
            if capture is not None:
                capture.close()


def _opened(before: Capture | None, path: Path, task: Task) -> Capture | None:
    """Another capture in place of the one before; None, and the reason in the task, where it cannot be read."""
    if before is not None:
        before.close()
    try:
        return open_capture(path)
    except CaptureError as problem:
        task.error, task.done = str(problem), True
        return None
