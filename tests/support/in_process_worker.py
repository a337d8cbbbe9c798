"""A worker that runs in a thread of this process: the parent's end is the same, records pass through the codec.

What only a process has (a kill, a hang, a flood through a pipe, a clean interpreter) needs transport.process.
"""

from __future__ import annotations

import contextlib
import gc
import io
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import torch

from inspector.engine.opening.checked_imports import check_imports
from inspector.engine.opening.user_code import UserCode
from inspector.engine.session.catalogue import catalog
from inspector.engine.session.service import Service
from inspector.engine.worker import _serve
from inspector.records import Cancel, Failure, Quit, decode, encode, encoded
from inspector.transport.parent_link import MAX_TOLD
from inspector.transport.process import Exit, explain

CLOSING_SECONDS = 60.0


class InProcessWorker:
    """What a session and the command line need of a WorkerProcess, with the worker's own way of serving requests."""

    def __init__(
        self,
        on_record: Callable[[Any], None],
        on_output: Callable[[str, str], None],
        on_exit: Callable[[Exit], None],
        python: str | None = None,
        threads: int = 0,
        memory: int = 0,
    ) -> None:
        assert python is None, "another interpreter needs a process of its own"
        self.on_record, self.on_output, self.on_exit = on_record, on_output, on_exit
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closing, self._code = False, 0
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._service = Service(self._say)

    @property
    def alive(self) -> bool:
        """True while it takes requests."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def send(self, request: Any) -> None:
        """What the worker's reader does with a request: a cancel takes effect at once, in the midst of a run."""
        try:
            request = decode(encode(request))
        except ValueError as problem:
            self._say(Failure(message=str(problem), kind="input"))
            return
        if isinstance(request, (Cancel, Quit)):
            self._service.cancel()
        if not isinstance(request, Cancel):
            self._service.received()
            self._requests.put(request)

    def close(self, patience: float = 1.0) -> None:
        """Ask to quit, and wait: what hangs cannot be ended here."""
        self._closing = True
        if self.alive:
            self.send(Quit())
            self._thread.join(CLOSING_SECONDS)
        assert not self.alive, "the model hangs; this needs a process of its own"

    def die(self) -> None:
        """End as a process that is killed does: its parent, which did not ask for that, hears how."""
        self._code = -9
        self.send(Quit())
        self._thread.join(CLOSING_SECONDS)

    def drained(self, patience: float = 2.0) -> None:
        """All output was passed on as it came."""

    def _say(self, record: Any) -> None:
        for data in encoded(record, MAX_TOLD):
            self.on_record(decode(data))

    def _work(self) -> None:
        link = _Link(self._say)
        with _as_in_a_worker() as self._service.code:
            self._say(catalog())
            while not isinstance(request := self._requests.get(), Quit):
                with _heard(self.on_output):
                    _serve(link, self._service, request)  # type: ignore[arg-type]
            self._service.close()
        for stream in ("stdout", "stderr"):
            self.on_output(stream, "")
        self.on_exit(Exit(self._code, self._closing, explain(self._code)))


class _Link:
    """The worker's end of the pipe, as far as serving a request needs it."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send


_the_only_one = threading.Lock()
"""Loaders and sys.path are those of the process: a worker begins when the one before has ended."""


@contextlib.contextmanager
def _as_in_a_worker() -> Iterator[UserCode]:
    """Imports are checked as in a worker; what that, the catalogue and the models change in a process is put back.

    Nothing is collected meanwhile: Qt objects that other tests left in cycles may not die in this thread.
    """
    assert _the_only_one.acquire(timeout=CLOSING_SECONDS / 2), "two workers at once need processes of their own"
    path, invariants = list(sys.path), torch.sparse.check_sparse_tensor_invariants.is_enabled()
    collecting = gc.isenabled()
    gc.disable()
    code = UserCode()
    undo = check_imports(code)
    try:
        yield code
    finally:
        undo()
        code._forget()
        sys.path[:] = path
        if not invariants:
            torch.sparse.check_sparse_tensor_invariants.disable()
        if collecting:
            gc.enable()
        _the_only_one.release()


_speaking: dict[int, Callable[[str, str], None]] = {}
"""Who is told of what a thread prints."""
_changing = threading.Lock()


@contextlib.contextmanager
def _heard(on_output: Callable[[str, str], None]) -> Iterator[None]:
    """What this thread prints is told as a worker's output; other threads print where they did before."""
    with _changing:
        _speaking[threading.get_ident()] = on_output
        for name in ("stdout", "stderr"):
            if not isinstance(getattr(sys, name), _Router):  # pytest puts its own there from time to time
                setattr(sys, name, _Router(name, getattr(sys, name)))
    try:
        yield
    finally:
        with _changing:
            del _speaking[threading.get_ident()]
            for name in ("stdout", "stderr"):
                if not _speaking and isinstance(router := getattr(sys, name), _Router):
                    setattr(sys, name, router.original)


class _Router(io.TextIOBase):
    def __init__(self, name: str, original: TextIO) -> None:
        self.name, self.original = name, original

    @property
    def encoding(self) -> Any:
        return self.original.encoding

    def write(self, text: str) -> int:
        thread = threading.get_ident()
        on_output = _speaking.get(thread)
        if on_output is None:
            return self.original.write(text)
        _speaking[thread] = lambda _name, said: self.original.write(said)  # whoever is told may print it
        try:
            on_output(self.name, text)
        finally:
            _speaking[thread] = on_output
        return len(text)

    def flush(self) -> None:
        self.original.flush()

    def isatty(self) -> bool:
        return False
