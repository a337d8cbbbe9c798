"""The worker's end of the connection to its parent, and what ends a worker that is alone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Client
from typing import Any

from inspector.records import decode, encoded
from inspector.transport.interpreter import is_same_version
from inspector.transport.process import ADDRESS, CUT_OFF_CODE, KEY, MAX_MESSAGE, VERSION
from inspector.version import __version__

MAX_TOLD = 8 << 20
"""Most bytes of one record from the worker; a request is never cut."""
LOOK_SECONDS = 0.4
"""Seconds after which a worker looks again whether its connection is still there."""
PARENT = "INSPECTOR_PARENT"
"""In the environment of a command that a window has started: the process with which it ends."""


class ParentLink:
    """The worker's end: connects to the parent named in the environment and removes the key from it."""

    def __init__(self) -> None:
        other = os.environ.pop(VERSION, "")
        if not is_same_version(other):
            raise SystemExit(
                f"This is version {__version__} of inspector; it was asked by version {other or 'unknown'}."
            )
        address, key = os.environ.pop(ADDRESS), bytes.fromhex(os.environ.pop(KEY))
        self._connection = Client(address, authkey=key)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        if sys.platform != "win32":
            threading.Thread(target=self._guard, args=(self._identity(),), name="connection", daemon=True).start()

    def _identity(self) -> tuple[int, int]:
        found = os.fstat(self._connection.fileno())
        return found.st_dev, found.st_ino

    def _guard(self, own: tuple[int, int]) -> None:
        """End where the model closed the connection or put something else in its place: a socket in which another
        thread waits stays open for the parent, which would wait for ever."""
        while True:
            time.sleep(LOOK_SECONDS)
            try:
                there = self._identity() == own
            except OSError:
                there = self._connection.closed  # by this end, in its proper way
            if not there:
                os._exit(CUT_OFF_CODE)

    def send(self, record: Any) -> None:
        """Send one record, its texts cut where it is too long; a parent that has ended is noticed by `receive`. A child
        that the model forked ends here: it is no worker."""
        if os.getpid() != self._pid:
            os._exit(0)
        with self._lock, contextlib.suppress(OSError):
            for data in encoded(record, MAX_TOLD):
                self._connection.send_bytes(data)

    def receive(self) -> Any:
        """The next request. Raises EOFError when the parent has ended."""
        try:
            return decode(self._connection.recv_bytes(MAX_MESSAGE))
        except OSError:
            raise EOFError from None


def die_with_parent(parent: int) -> None:
    """On Linux: be killed when the parent dies, even while native code blocks the interpreter."""
    if sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def end_with_window() -> None:
    """On Linux: a command that a window has started ends with it, however that ends."""
    parent = os.environ.pop(PARENT, "")
    if parent.isdecimal():
        die_with_parent(int(parent))
