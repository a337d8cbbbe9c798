"""A process that must not outlive the one that started it, however that one ends (Linux)."""

from __future__ import annotations

import os
import signal
import sys

PARENT = "STARTED_BY"
"""Variable with the number of the process that starts another one: it may be dead before this is asked for."""


def ends_with_parent() -> None:
    """From now on the end of the thread that started this process kills it."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):
        os._exit(1)


def started_by_this() -> dict[str, str]:
    """The environment of a process that calls `ends_with_parent`."""
    return {**os.environ, PARENT: str(os.getpid())}
