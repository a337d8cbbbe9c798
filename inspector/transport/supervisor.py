"""The small process above a worker, on Linux: ends all that the worker started, and a worker that takes too much.

Whatever a model starts, a daemon that left its group and its environment too, is handed to this process once its own
parent has ended (`PR_SET_CHILD_SUBREAPER`, prctl(2)): so nothing is left when the worker ends, nor when the window is
killed. It has no threads and runs no code of a model, so it is there while native code blocks the worker's interpreter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from inspector.transport.memory import MEMORY, allowed, may_take_none, named_limit, taken_below, taken_by
from inspector.transport.parent_link import die_with_parent
from inspector.transport.process import LEFT_NONE, MEMORY_CODE, TOOK
from inspector.transport.same_command import end_like

LOOK_SECONDS = 0.05
"""Seconds between two looks at the worker's memory, and at whether the window is still there."""
LOOKS = 10
"""Of so many looks one is at all processes that the worker has started: counting shared pages takes longer."""
ENDING_SECONDS = 2.0
"""Seconds for which processes that were killed are waited for; one that hangs in a driver ends later."""
LAST_SECONDS = 10.0
"""Seconds in which a worker that may take no memory any more can answer and end by itself: it may well hang."""
SET_CHILD_SUBREAPER = 36


def stay_above(parent: int) -> None:
    """On Linux: return in a new process, the worker; this one stays above it and ends as the worker ends.

    `parent` is the process of the window. Called before there is any thread.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1)
    own, waited = os.getpid(), {signal.SIGCHLD, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    worker = os.fork()
    if not worker:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        die_with_parent(own)
        return
    code = _watch(worker, parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    end_like(code)


def _watch(worker: int, parent: int) -> int:
    """How the worker ended, as in subprocess; everything that it started has ended too."""
    named, looks, last = named_limit(os.environ.get(MEMORY, "")), 0, float("inf")
    while (code := _ended(worker)) is None:
        told = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, LOOK_SECONDS)
        if told is not None and told.si_signo == signal.SIGTERM:
            _kill(worker, signal.SIGTERM)
        if os.getppid() != parent:
            _end_all()
            os._exit(1)
        looks += 1
        taken = taken_by(worker) if looks % LOOKS else taken_below(os.getpid())
        if taken > (most := allowed(taken, named)):
            _end_all()
            _say(_too_much(taken, most, bool(named)))
            return MEMORY_CODE
        if not looks % LOOKS:
            last = min(last, time.monotonic() + LAST_SECONDS) if may_take_none(worker) else float("inf")
        if time.monotonic() > last:
            _end_all()
            _say(LEFT_NONE)
            return MEMORY_CODE
    _end_all()
    return code


def _ended(worker: int) -> int | None:
    """The worker's exit code once it has ended; what else has ended is let go."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == worker:
                return os.waitstatus_to_exitcode(found[1])
    return None


def _end_all() -> None:
    """Kill what this process has below it until nothing is left: the children of what was killed come to it."""
    end = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < end:
        for process in _children():
            _kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_SECONDS)


def _children() -> Iterator[int]:
    own = str(os.getpid())
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = Path(entry.path, "stat").read_bytes()  # "number (name) state parent …", any name
                if status.rpartition(b")")[2].split()[1].decode() == own:
                    yield int(entry.name)


def _kill(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def _too_much(taken: int, most: float, named: bool) -> str:
    limit = "that it may take" if named else "that it may take before the machine swaps"
    return (
        f"{TOOK} {taken / 1e9:.1f} GB of memory, more than the {most / 1e9:.1f} GB {limit} (Preferences, or --memory): "
        "it was ended; what was captured so far is stored."
    )


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"\n{sentence}\n".encode())
