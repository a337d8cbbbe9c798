"""The end of a process whose threads may still work.

A thread that works while the interpreter takes itself apart may crash it: one that was inside native code is ended in
the middle of it when it comes back. What has to be kept is on the disk by then, so such a process ends without that.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

SECONDS = 2.0
"""For threads that nobody has to wait for: one that reads a large capture ends after the page that it is at."""


def end_with(code: int) -> int:
    """The exit code, once no other thread works. Threads that are not daemons are waited for as the interpreter does;
    where a daemon goes on for longer than `SECONDS`, the process ends here, at once."""
    if not _left(SECONDS):
        return code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or its reader gone
            stream.flush()
    os._exit(code)


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
