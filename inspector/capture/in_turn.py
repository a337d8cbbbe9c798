"""Writers of one capture begin and end one after the other, also those of several processes.

SQLite's own locks do not see to that: they are the process', and closing any descriptor of the index gives them up
(a reader in the same process does so, and the writer's own look at its file). From when a writer has given up its lease
until its log is in the index only this turn keeps another one away, which would destroy the index.

It is a lock on the open folder (flock(2)): of a descriptor, not of a process, gone with whoever held it, and no file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from inspector.capture.target import busy

AGAIN = 0.005
"""Seconds until a turn that another writer has is asked for again."""


@contextlib.contextmanager
def in_turn(folder: Path, seconds: float) -> Iterator[bool]:
    """Whether no other writer begins or ends in a folder meanwhile; waits so long for that.

    Where there are no such locks (some network file systems, no descriptor left) it is taken to be so. On Windows
    SQLite's own locks are enough.
    """
    descriptor = _opened(folder)
    try:
        yield descriptor < 0 or _taken(descriptor, seconds)
    finally:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                _lock(descriptor, on=False)  # a child that was forked meanwhile has the descriptor too
            with contextlib.suppress(OSError):
                os.close(descriptor)


@contextlib.contextmanager
def turn_of(folder: Path, seconds: float) -> Iterator[None]:
    """The same for a writer that begins. Raises CaptureError where another one takes too long."""
    with in_turn(folder, seconds) as alone:
        if not alone:
            raise busy(folder)
        yield


def _opened(folder: Path) -> int:
    if sys.platform == "win32":
        return -1
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1


def _taken(descriptor: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        try:
            _lock(descriptor, on=True)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(AGAIN)
        except OSError:
            return True
        else:
            return True


def _lock(descriptor: int, *, on: bool) -> None:
    """Raises BlockingIOError where another writer has it; OSError."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if on else fcntl.LOCK_UN)
