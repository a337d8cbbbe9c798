"""Signals that ask the window to end: Ctrl+C, SIGTERM (the end of a desktop's session), SIGHUP (of its terminal's).

It ends as its frame's button ends it: layout, notes and where one was are remembered, workers finish their captures.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


def end_at_once() -> None:
    """Until there is a window Ctrl+C ends the process: an exception would be lost in an event's handler, or in an
    import."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def close_by_signals(close: Callable[[], object]) -> None:
    """Call `close` at the first of these signals. What is ignored here, as below nohup, stays ignored.

    A second Ctrl+C ends the process at once, and Linux its workers with it. The others often come together. Python
    calls a handler between any two lines, in the middle of a tick or of painting too, and what is closed beneath them
    may crash: so it is closed by the next turn of the loop of events.
    """
    from PySide6.QtCore import QTimer

    asked = False

    def end(_number: int, _frame: object) -> None:
        nonlocal asked
        if not asked:
            asked = True
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            QTimer.singleShot(0, close)

    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
