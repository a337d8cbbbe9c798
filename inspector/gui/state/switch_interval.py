"""How soon Python's threads give way to each other, while some work beside the window."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from inspector.capture.turns import interrupted_by
from inspector.gui.state.pauses import Pause

SWITCH_SECONDS = 0.0005
"""After which a thread gives way to another one, while work is done aside. The window's thread gives way at each call
of Qt's and would wait Python's usual 5 ms for its turn each time, twenty times in one tick."""
_usual = sys.getswitchinterval()
_working: set[threading.Thread] = set()
_changing = threading.Lock()
"""Two threads that begin and end at once would leave what the slower one had found before."""


@contextmanager
def giving_way() -> Iterator[None]:
    """While this thread is inside, threads take turns sooner, and it pauses for the window (pauses.py); as usual again
    after the last has left."""
    thread = threading.current_thread()
    _give_way(thread, working=True)
    try:
        with interrupted_by(Pause()):
            yield
    finally:
        _give_way(thread, working=False)


def _give_way(thread: threading.Thread, *, working: bool) -> None:
    """Switch between threads sooner while any of these works, and as usual again after the last."""
    with _changing:
        (_working.add if working else _working.discard)(thread)
        sys.setswitchinterval(SWITCH_SECONDS if _working else _usual)
