"""A display that is named but cannot be opened: Qt ends the process then, and says so a moment before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

OFFSCREEN = {"QT_QPA_PLATFORM": "offscreen"}


@contextmanager
def again_without_a_window() -> Iterator[None]:
    """While Qt opens the display inside, this program begins once more without one where that cannot be: the same
    command in place of this one. Nothing else tells beforehand, but to try it in a process of its own, for which a
    window would wait half a second."""

    def told(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        if kind == QtMsgType.QtFatalMsg:
            sys.stdout.flush()
            os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **OFFSCREEN})
        elif kind == QtMsgType.QtCriticalMsg:
            sys.stderr.write(f"{message}\n")

    before = qInstallMessageHandler(told)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
