"""A worker that is started before the window that it is for: its libraries load while the window is built."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from inspector.transport.process import WorkerProcess

Say = Callable[..., None]
Chosen = tuple[str | None, int, float]
"""Python, threads and memory of a worker, as WorkerProcess takes them."""


class EarlyWorker(WorkerProcess):
    """Keeps what its process tells until `belong_to` says who is to be told."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self._telling_lock = threading.Lock()
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._owner: dict[str, Say] | None = None
        self._begun = False
        super().__init__(self._keeping("on_record"), self._keeping("on_output"), self._keeping("on_exit"), *chosen)

    def _keeping(self, name: str) -> Say:
        def take(*told: Any) -> None:
            with self._telling_lock:
                if self._owner is None:
                    self._told.append((name, told))
                    return
            self._owner[name](*told)

        return take

    def start(self) -> None:
        """Start the process, where it has not been started yet."""
        if not self._begun:
            self._begun = True
            super().start()

    def belong_to(self, on_record: Say, on_output: Say, on_exit: Say) -> None:
        """Tell these what was told so far, and from now on at once."""
        owner = {"on_record": on_record, "on_output": on_output, "on_exit": on_exit}
        with self._telling_lock:
            for name, told in self._told:
                owner[name](*told)
            self._told, self._owner = [], owner
            self.on_record, self.on_output, self.on_exit = on_record, on_output, on_exit


_waiting: list[EarlyWorker] = []


def begin_early(chosen: Chosen) -> None:
    """Start a worker that `early_worker` gives away. From the main thread."""
    worker = EarlyWorker(chosen)
    worker.start()
    _waiting.append(worker)


def early_worker(chosen: Chosen, on_record: Say, on_output: Say, on_exit: Say) -> EarlyWorker | None:
    """The worker that was started early, where there is one of this kind; one of another kind is ended."""
    while _waiting:
        worker = _waiting.pop()
        if worker.chosen == chosen:
            worker.belong_to(on_record, on_output, on_exit)
            return worker
        threading.Thread(target=worker.close, name="worker-ending").start()
    return None
