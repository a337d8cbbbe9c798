"""A worker that runs in a thread of this process: the parent's end is the same, records pass through the codec.

What only a process has (a kill, a hang, a flood through a pipe, a clean interpreter) needs transport.process.
"""

from __future__ import annotations

import contextlib
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
from inspector.transport.process import MAX_TOLD, Exit

CLOSING_SECONDS = 60.0


class InProcessWorker:
    """What a session and the command line need of a WorkerProcess, with the worker's own way of serving requests."""

    def __init__(
        self,
        on_record: Callable[[Any], None],
        on_output: Callable[[str, str], None],
        on_exit: Callable[[Exit], None],
        python: str | None = None,
    ) -> None:
        assert python is None, "another interpreter needs a process of its own"
        self.on_record, self.on_output, self.on_exit = on_record, on_output, on_exit
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._code: UserCode | None = None
        self._service: Service | None = None

    @property
    def alive(self) -> bool:
        """True while it takes requests."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to serve."""
        self._code = UserCode()
        self._service = Service(self._say, self._code)
        self._thread.start()

    def send(self, request: Any) -> None:
        """What the worker's reader does with a request: a cancel takes effect at once, in the midst of a run."""
        assert self._service is not None
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

    def drained(self, patience: float = 2.0) -> None:
        """All output was passed on as it came."""

    def _say(self, record: Any) -> None:
        for data in encoded(record, MAX_TOLD):
            self.on_record(decode(data))

    def _work(self) -> None:
        assert self._service is not None and self._code is not None
        link = _Link(self._say)
        with _as_in_a_worker(self._code), _heard(self.on_output):
            self._say(catalog())
            while not isinstance(request := self._requests.get(), Quit):
                _serve(link, self._service, request)  # type: ignore[arg-type]
            self._service.close()
        for stream in ("stdout", "stderr"):
            self.on_output(stream, "")
        self.on_exit(Exit(0, self._closing, "The worker ended."))


class _Link:
    """The worker's end of the pipe, as far as serving a request needs it."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send


@contextlib.contextmanager
def _as_in_a_worker(code: UserCode) -> Iterator[None]:
    """Imports are checked as in a worker; what that, the catalogue and the models change in a process is put back."""
    path, invariants = list(sys.path), torch.sparse.check_sparse_tensor_invariants.is_enabled()
    undo = check_imports(code)
    try:
        yield
    finally:
        undo()
        code._forget()
        sys.path[:] = path
        if not invariants:
            torch.sparse.check_sparse_tensor_invariants.disable()


@contextlib.contextmanager
def _heard(on_output: Callable[[str, str], None]) -> Iterator[None]:
    """What this thread prints is told as a worker's output; other threads print where they did before."""
    out, err = _Spoken("stdout", sys.stdout, on_output), _Spoken("stderr", sys.stderr, on_output)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


class _Spoken(io.TextIOBase):
    def __init__(self, name: str, original: TextIO, on_output: Callable[[str, str], None]) -> None:
        self._name, self._original, self._on_output = name, original, on_output
        self._speaker, self._telling = threading.get_ident(), False

    @property
    def encoding(self) -> Any:
        return self._original.encoding

    def write(self, text: str) -> int:
        if threading.get_ident() != self._speaker or self._telling:
            return self._original.write(text)
        self._telling = True
        try:
            self._on_output(self._name, text)
        finally:
            self._telling = False
        return len(text)

    def flush(self) -> None:
        self._original.flush()

    def isatty(self) -> bool:
        return False
