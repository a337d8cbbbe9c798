"""The end of a process whose threads may still work.

A thread that works while the interpreter takes itself apart may crash it: one that was inside native code is ended in
the middle of it when it comes back. So may Qt, which destroys its items at that moment: a method of Python's that it
calls then finds half of its own item gone. What has to be kept is on the disk by then, so the process ends without
that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from typing import NoReturn

SECONDS = 2.0
"""For threads that nobody has to wait for: one that reads a large capture ends after the page that it is at."""


def end_with(code: int) -> NoReturn:
    """End the process with an exit code, once no other thread works. Threads that are not daemons are waited for as the
    interpreter does, and what is to be done at its end (temporary folders) is done; where a daemon goes on for longer
    than `SECONDS`, the process ends at once."""
    if not _left(SECONDS):
        _last_tasks()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or its reader gone
            stream.flush()
    os._exit(code)


def _last_tasks() -> None:
    """What was registered for the end of the interpreter, but that Qt destroys what is left of its objects."""
    qt = getattr(sys.modules.get("PySide6.QtCore"), "__moduleShutdown", None)
    if qt is not None:
        atexit.unregister(qt)
    atexit._run_exitfuncs()


def _left(seconds: float) -> list[threading.Thread]:
    """The daemons that still work after so long."""
    others = [one for one in threading.enumerate() if one not in (threading.current_thread(), threading.main_thread())]
    for one in others:
        if not one.daemon:
            one.join()
    end = time.monotonic() + seconds
    daemons = [one for one in others if one.daemon]
    for one in daemons:
        one.join(max(0.0, end - time.monotonic()))
    return [one for one in daemons if one.is_alive()]
