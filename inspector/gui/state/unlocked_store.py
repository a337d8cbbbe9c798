"""Qt's store of settings, without its waits: it waits for the lock of another process as long as that lives.

A window that was stopped (Ctrl+Z, a debugger) in the middle of writing would hold all others of its user, and so would
a lock of this process that the disk did not let Qt remove. Qt writes settings as a whole: where a lock is removed, the
later one of two that write holds.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from PySide6.QtCore import QEvent, QSettings

HELD_SECONDS = 1.0
"""Writing some kilobytes takes milliseconds: a process that takes so long has been stopped."""
AGAIN = 0.02


class UnlockedStore(QSettings):
    """An ini file."""

    def __init__(self, file: str) -> None:
        super().__init__(file, QSettings.Format.IniFormat)

    def event(self, event: QEvent) -> bool:
        """What was set is written when the window has its turn."""
        if event.type() == QEvent.Type.UpdateRequest:
            self.free()
        return super().event(event)

    def sync(self) -> None:
        """Write now."""
        self.free()
        super().sync()

    def free(self) -> None:
        """Remove a lock that is this process' own, which Qt could not remove (an error of the disk; nothing is written
        now: Qt does so in this thread alone), and one that another process holds for too long."""
        lock, seen, end = Path(f"{self.fileName()}.lock"), None, 0.0
        with contextlib.suppress(OSError):
            while (held := _made(lock)) is not None and not _is_own(lock):
                if held != seen:
                    seen, end = held, time.monotonic() + HELD_SECONDS
                elif time.monotonic() > end:
                    break
                time.sleep(AGAIN)
            if held is not None and lock.is_file():
                lock.unlink(missing_ok=True)


def _made(lock: Path) -> tuple[int, int] | None:
    """Which file it is; None where there is none. The reader of captures, which has the same, is loaded later."""
    try:
        found = lock.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _is_own(lock: Path) -> bool:
    try:
        return int(lock.read_bytes()[:20].split(b"\n")[0]) == os.getpid()
    except (OSError, ValueError):
        return False
