"""The connection to the worker: a child process started by module name, with a pipe of its own for records.

This is the parent's end; the worker's is `parent_link.py`. Records travel as JSON bytes (never pickles) over a local
socket or named pipe whose key only the child knows; the child's stdout and stderr go to the log. The parent closes it
in three steps: ask, terminate, kill.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import IO, Any

from inspector.records import BadRecordError, Failure, Quit, decode, encode
from inspector.transport.address import listen
from inspector.transport.interpreter import cannot_be_run, chosen, what_is_wrong
from inspector.transport.lines import Lines
from inspector.transport.marked import end_marked
from inspector.transport.memory import MEMORY, lives_below
from inspector.version import __version__

MODULE = "inspector.engine.worker"
ADDRESS, KEY, VERSION = "INSPECTOR_WORKER_ADDRESS", "INSPECTOR_WORKER_KEY", "INSPECTOR_WORKER_VERSION"
MARK = "INSPECTOR_WORKER_MARK"
"""In the environment of a worker and of all that it starts: what became a daemon is found by it."""
THREADS = "INSPECTOR_THREADS"
"""How many threads a worker computes with; unset for all cores but one."""
MAX_MESSAGE = 64 << 20
PIECE = 1 << 16
"""Bytes of output that are read at a time."""
KEPT_LINES = 80
THREADS_SECONDS = 2.5
"""Seconds for which `close` waits until nothing of the child's is read any more: pipes end with its last process."""
LOST_SECONDS = 0.7
"""Seconds for which a worker whose connection has ended may still be ending."""
TOLD_SECONDS = 10.0
"""Seconds, on a busy machine, until the process above a worker that has ended tells how."""
CUT_OFF_CODE = 86
"""With which a worker ends that finds it gone."""
MEMORY_CODE, TOOK = 87, "The model took"
"""With which a worker ends that took more memory than it may, and how the last line says so (supervisor.py)."""
LEFT_NONE = (
    "The model lowered the memory that its process may take below what it has, for good, and the worker could not end "
    "by itself: it was ended; what was captured so far is stored."
)
"""The last line of one that was left with none."""
SPENT_CODE = 88
"""With which a worker ends, its request answered, whose model has lowered limits of the process for good."""
ALTERED_CODE = 89
"""With which a worker ends that is asked to open another model, whose own one has altered what torch does for all."""
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
"""glibc keeps freed memory: taking new pages from the system for every large tensor cost up to a third of a run."""
HIDDEN_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY")


CUT_OFF = (
    "The worker lost its connection: the model closed or replaced file descriptors that are not its own; what was "
    "captured so far is stored."
)


SPENT = "The model lowered limits of its process that cannot be lifted again, so the worker is replaced by another."
ALTERED = (
    "The model before altered what torch does for every model, or left a thread that goes on, so another worker opens "
    "the next one."
)
REPLACED = {SPENT_CODE: SPENT, ALTERED_CODE: ALTERED}
"""Ends of workers whose place another one takes."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a worker ended: its exit code (negative: the signal), whether it was asked to, a one-line message, and the
    stack that Python printed where native code crashed (or ""). `unusable`: its interpreter cannot run workers at
    all."""

    code: int
    expected: bool
    sentence: str
    stack: str = ""
    unusable: bool = False


def _where(stack: str) -> str:
    """The innermost line of a fatal error's Python stack that is neither torch's nor the standard library's."""
    current = stack.partition("Current thread")[2]  # other threads may be listed before it
    found = re.findall(r'File "([^"]+)", line (\d+) in', current)
    own = [
        (path, line)
        for path, line in found
        if "site-packages" not in path and f"python3.{sys.version_info[1]}" not in path
    ]
    return f"{own[0][0].replace(chr(92), '/').rpartition('/')[2]}, line {own[0][1]}" if own else ""


def explain(code: int, last: str = "", where: str = "") -> str:
    """A one-line message about an exit code; `last`: the last line of stderr, `where`: the line that crashed."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        what = {
            "SIGKILL": "was killed (perhaps the machine ran out of memory)",
            "SIGSEGV": "crashed in native code (segmentation fault)",
            "SIGABRT": "aborted in native code",
            "SIGBUS": "lost a file that it was reading (the file changed meanwhile)",
            "SIGTERM": "was ended from outside",
        }.get(name, f"was ended by {name}")
        return f"The worker {what}{f' at {where}' if where else ''}; what was captured so far is stored."
    if code == 0:
        return "The worker ended by itself in the middle of its work; the model probably called exit."
    return f"The worker ended with exit code {code}{': ' + last if last else ''}; what was captured so far is stored."


class WorkerProcess:
    """The parent's end. Callbacks come from reader threads: `on_record(record)`, `on_output(stream, text)`,
    `on_exit(Exit)` exactly once. Start it from the main thread: on Linux the worker dies with the starting thread.

    Output comes in pieces as it is read, not by lines; an empty piece ends a stream. A slow callback makes the model
    wait; one that raises OSError (a closed terminal) is not called again. `python`: the interpreter that it runs in, or
    the folder of its environment; see interpreter.py for the default. `memory`: the most that it may take, in GB, 0 for
    what the environment says (memory.py).
    """

    def __init__(
        self,
        on_record: Callable[[Any], None],
        on_output: Callable[[str, str], None],
        on_exit: Callable[[Exit], None],
        python: str | None = None,
        threads: int = 0,
        memory: float = 0.0,
    ) -> None:
        self.python, self.threads, self.memory = chosen(python), threads, memory
        self.on_record, self.on_output, self.on_exit = on_record, on_output, on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closing = self._group_ended = self._heard = self._cut_off = False
        self._mark = secrets.token_hex(16)
        self._errors: deque[str] = deque(maxlen=KEPT_LINES)
        self._drains: dict[str, threading.Thread] = {}
        self._last: threading.Thread | None = None
        """The thread that ends after the others and calls `on_exit`."""
        self._drained_at = 0.0
        self._telling: set[str] = set()

    @property
    def pid(self) -> int:
        """Process id of the child; 0 before it was started."""
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        """True while the child runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the child; requests may be sent at once, they wait until it listens.

        An interpreter that cannot be run is reported by `on_exit`, as everything else that ends a worker.
        """
        key = secrets.token_bytes(32)
        listener = listen(key)
        try:
            self._process = self._child({ADDRESS: str(listener.address), KEY: key.hex()})
        except (OSError, ValueError) as problem:
            listener.close()
            ended = Exit(127, False, cannot_be_run(self.python, problem), unusable=True)
            threading.Thread(target=self.on_exit, args=(ended,), name="worker-exit", daemon=True).start()
            return
        self._drains = {
            name: threading.Thread(target=self._drain, args=(name, pipe), name=f"worker-{name}", daemon=True)
            for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr))
        }
        reader = threading.Thread(target=self._read, args=(listener,), name="worker-records", daemon=True)
        threads = [*self._drains.values(), reader]
        for thread in threads:
            thread.start()
        self._last = threading.Thread(target=self._wait, args=(listener, threads), name="worker-exit", daemon=True)
        self._last.start()

    def _child(self, more: dict[str, str]) -> subprocess.Popen[bytes]:
        """The child process. Raises OSError."""
        hidden = HIDDEN_VARIABLES if self.python == sys.executable else (*HIDDEN_VARIABLES, "PYTHONHOME")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment.update({VERSION: __version__, MARK: self._mark, "PYTHONUNBUFFERED": "1", **more, **KEEP_MEMORY})
        if self.threads:
            environment[THREADS] = str(self.threads)
        if self.memory:
            environment[MEMORY] = str(self.memory)
        own_group: dict[str, Any] = {"start_new_session": True} if sys.platform != "win32" else {}
        return subprocess.Popen(
            [self.python, "-P", "-X", "faulthandler", "-m", MODULE],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **own_group,
        )  # fmt: skip

    def send(self, request: Any) -> None:
        """Queue a request, which a thread sends once the child listens: a child that reads nothing never holds the
        caller. A dead child's requests are dropped: `on_exit` reports its end."""
        self._requests.put(encode(request))

    def _send(self, connection: Connection[Any, Any]) -> None:
        """Send what is queued, in its order, until the child has ended."""
        while (data := self._requests.get()) is not None:
            with contextlib.suppress(OSError, ValueError):
                connection.send_bytes(data)

    def close(self, patience: float = 1.0) -> None:
        """Ask to quit, then terminate, then kill, waiting `patience` seconds at each step. Idempotent."""
        self._closing = True
        if self._process is None:
            return
        if self.alive:
            self.send(Quit())
        for action in (None, signal.SIGTERM, None if sys.platform == "win32" else signal.SIGKILL):
            if action is not None:
                self._signal(action)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                break
        else:
            self._process.kill()
            self._process.wait()
        self._end_group()
        if self._last is not None and self._last is not threading.current_thread():
            self._last.join(THREADS_SECONDS)  # a thread that still works while the interpreter ends may crash it

    def _end_group(self) -> None:
        """End the processes that the model left behind, immediately after the child's end and never again.

        Later its number may be that of another process and of an unrelated group.
        """
        with self._lock:
            over, self._group_ended = self._group_ended, True
        if not over and self._process is not None and sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            end_marked(f"{MARK}={self._mark}".encode())

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, number)

    def drained(self, patience: float = 2.0) -> None:
        """Wait until all output was passed on, as long as more arrives or its receiver is busy with it."""
        for name, thread in self._drains.items():
            while thread.is_alive() and (name in self._telling or time.monotonic() - self._drained_at < patience):
                thread.join(0.05)

    def _drain(self, name: str, pipe: IO[bytes]) -> None:
        """Read a stream to its end in any case: an unread pipe would block the model."""
        decoder, lines, heard, more = codecs.getincrementaldecoder("utf-8")("replace"), Lines(), True, True
        with pipe:
            while more:
                raw = pipe.read1(PIECE)  # type: ignore[attr-defined]
                more, self._drained_at = bool(raw), time.monotonic()
                text = decoder.decode(raw, final=not more)
                if name == "stderr":
                    ended = [*lines.feed(text), *([] if more else lines.close())]
                    self._errors.extend(line[:400] for line in ended if line.strip())
                heard = heard and (not text or self._deliver(name, text))
        if heard:
            self._deliver(name, "")

    def _deliver(self, name: str, text: str) -> bool:
        """Pass a piece of output on; False where no receiver is left."""
        self._telling.add(name)
        try:
            self.on_output(name, text)
        except UnicodeError:  # a terminal that cannot show this piece may show the next one
            return True
        except (OSError, ValueError):  # a pipe or a terminal that was closed
            return False
        finally:
            self._telling.discard(name)
        return True

    def _read(self, listener: Listener) -> None:
        try:
            connection = listener.accept()
        except (OSError, EOFError, AuthenticationError):
            return
        self._connection = connection
        sender = threading.Thread(target=self._send, args=(connection,), name="worker-requests", daemon=True)
        sender.start()
        while True:
            try:
                record = decode(connection.recv_bytes(MAX_MESSAGE))
                self._heard = True
                self.on_record(record)
            except BadRecordError as problem:
                unknown = f"The worker sent an unknown record: {problem}"
                self._deliver("worker", f"{unknown}\n")
                self.on_record(Failure(message=unknown, kind="worker"))
            except (OSError, EOFError):
                break
        self._end_if_cut_off()
        self._requests.put(None)
        sender.join()  # with the child its end is gone; closed earlier, what is sent could reach another file
        connection.close()

    def _end_if_cut_off(self) -> None:
        """A worker without its connection can neither be asked nor tell anything: end it, and say so."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LOST_SECONDS)
        if sys.platform == "linux" and self.alive and not lives_below(self._process.pid):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it has ended; who tells how has not had its turn yet
                self._process.wait(TOLD_SECONDS)
        if not self._closing and self.alive:
            self._cut_off = True
            if sys.platform == "win32":
                self._process.kill()
            else:
                self._signal(signal.SIGKILL)

    def _wait(self, listener: Listener, threads: list[threading.Thread]) -> None:
        assert self._process is not None
        code = self._process.wait()
        self._end_group()
        with contextlib.suppress(OSError):
            if self._connection is None:  # it died before it listened: end accept(), without waiting for an answer
                with contextlib.suppress(OSError, EOFError):
                    Client(listener.address).close()
            listener.close()
        self._requests.put(None)
        for thread in threads:
            thread.join(1.0)
        self.on_exit(self._exit_of(code))

    def _exit_of(self, code: int) -> Exit:
        lines = list(self._errors)
        if self._cut_off or code == CUT_OFF_CODE:
            return Exit(code, False, CUT_OFF)
        if code in REPLACED and not self._closing:
            return Exit(code, False, REPLACED[code])
        if code == MEMORY_CODE and lines and lines[-1].startswith((TOOK, LEFT_NONE)):
            return Exit(code, False, lines[-1])
        if not self._heard and not self._closing and code > 0:  # its first message is the catalogue
            wrong = what_is_wrong(self.python)
            if wrong:
                return Exit(code, False, wrong, "\n".join(lines), unusable=True)
        fatal = next(
            (n for n, line in enumerate(lines) if line.startswith(("Fatal Python error", "Windows fatal"))), None
        )
        stack = "\n".join(lines[fatal:]) if fatal is not None else ""
        return Exit(code, self._closing, explain(code, lines[-1][:200] if lines else "", _where(stack)), stack)


__all__ = ["Exit", "WorkerProcess", "explain"]
