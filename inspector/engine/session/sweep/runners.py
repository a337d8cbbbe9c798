"""Where frames are computed: in this process one after the other, or in several processes at a time."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from inspector.engine.session.sweep.one_frame import Maker, Progress, compute
from inspector.engine.session.sweep.spool import Spool
from inspector.records import Failure, Finished, NeedsTrust, SweepFrame
from inspector.records import Progress as Told
from inspector.transport.process import Exit, WorkerProcess

MOST_TRIES = 2
"""A process that ends in the middle of a frame (no memory, native code) is started again once."""
Output = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Done:
    """A frame that was computed into its spool, or the reason why not."""

    task: SweepFrame
    failed: str = ""


class Runner(Protocol):
    """Computes frames, in any order."""

    def has_room(self) -> bool:
        """Whether one more frame can be given to it."""

    def submit(self, task: SweepFrame) -> None:
        """Compute this one too."""

    def next(self, seconds: float) -> Done | None:
        """A frame that is done, or None where there was none within the time. Raises CancelledError."""

    def rest(self) -> list[Done]:
        """What is done by now, without waiting and without computing."""

    def close(self) -> None:
        """End what is still being computed."""


def spool_of(task: SweepFrame) -> Path:
    """Where a frame is stored until it is merged."""
    return Path(task.run.path)


class Here:
    """In this process; `next` computes one."""

    def __init__(self, maker: Maker, cancelled: Callable[[], bool], progress: Progress) -> None:
        self._maker, self._cancelled, self._progress = maker, cancelled, progress
        self._task: SweepFrame | None = None

    def has_room(self) -> bool:
        return self._task is None

    def submit(self, task: SweepFrame) -> None:
        self._task = task

    def next(self, seconds: float) -> Done | None:
        task, self._task = self._task, None
        if task is None:
            return None
        with spool_of(task).open("wb") as file:
            return Done(task, compute(task, Spool(file), self._maker, self._cancelled, self._progress))

    def rest(self) -> list[Done]:
        return []

    def close(self) -> None:
        self._maker.put_back()


@dataclass(slots=True)
class _Process:
    """A worker process, and the frame that it computes."""

    number: int
    worker: WorkerProcess
    task: SweepFrame | None = None


@dataclass(slots=True)
class Processes:
    """In `count` worker processes; each is started with its first frame."""

    count: int
    output: Output
    python: str | None = None
    _events: queue.SimpleQueue[tuple[int, Any]] = field(default_factory=queue.SimpleQueue)
    _running: dict[int, _Process] = field(default_factory=dict)
    _again: deque[SweepFrame] = field(default_factory=deque)
    _tries: dict[int, int] = field(default_factory=dict)
    _started: int = 0

    def has_room(self) -> bool:
        return len(self._again) + sum(one.task is not None for one in self._running.values()) < self.count

    def submit(self, task: SweepFrame) -> None:
        idle = next((one for one in self._running.values() if one.task is None), None)
        process = idle if idle is not None else self._start()
        process.task = task
        self._tries[task.frame.index] = self._tries.get(task.frame.index, 0) + 1
        process.worker.send(task)

    def _start(self) -> _Process:
        number, self._started = self._started, self._started + 1

        def heard(event: Any) -> None:
            if not isinstance(event, Told):
                self._events.put((number, event))

        worker = WorkerProcess(heard, self._passed_on, heard, self.python)
        process = self._running[number] = _Process(number, worker)
        worker.start()
        return process

    def _passed_on(self, stream: str, text: str) -> None:
        if text:
            self.output(stream, text)

    def next(self, seconds: float) -> Done | None:
        while self._again and sum(one.task is not None for one in self._running.values()) < self.count:
            self.submit(self._again.popleft())
        with suppress(queue.Empty):
            number, event = self._events.get(timeout=seconds)
            return self._heard(self._running.get(number), event)
        return None

    def rest(self) -> list[Done]:
        found = []
        while not self._events.empty():
            number, event = self._events.get()
            found.append(self._heard(self._running.get(number), event))
        return [done for done in found if done is not None]

    def _heard(self, process: _Process | None, event: Any) -> Done | None:
        if process is None or process.task is None:
            return None
        task = process.task
        if isinstance(event, Finished):
            process.task = None
            return Done(task)
        if isinstance(event, (Failure, NeedsTrust)):
            process.task = None
            return Done(task, event.message)
        return self._ended(process, event) if isinstance(event, Exit) else None

    def _ended(self, process: _Process, event: Exit) -> Done | None:
        task = process.task
        assert task is not None
        del self._running[process.number]
        if self._tries[task.frame.index] < MOST_TRIES and not event.unusable:
            self._again.append(task)
            return None
        return Done(task, event.sentence)

    def close(self) -> None:
        running, self._running = list(self._running.values()), {}
        for process in running:
            process.worker.close()
