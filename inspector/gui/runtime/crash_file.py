"""A file for each error of the window itself: what went wrong, where, and in which versions. It is what to send.

It holds no model, no data and no text of a sequence; the user's home folder is written as "~". A crash of native code
cannot write it: Python's `faulthandler` leaves a stack then, which the next start finds and puts into such a file.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import platformdirs

from inspector.capture.regular import open_regular
from inspector.gui.runtime.versions import as_text, versions

KEPT = 10
"""Files that are kept, the newest."""
WHAT_TO_SEND = "Please send this file with a sentence on what you did before; read it first: it may name your files."
NATIVE = "native-"
LONGEST = 1 << 20
"""Bytes of a stack that are kept."""


def folder() -> Path:
    """Where the files are."""
    return Path(platformdirs.user_log_dir("inspector", appauthor=False))


def write(details: str, where: Path | None = None) -> Path | None:
    """One more file with these details, or None where nothing can be written; the oldest are removed."""
    where = where or folder()
    now = datetime.now(UTC)
    path = where / f"error-{now:%Y%m%d-%H%M%S-%f}.txt"
    plain = details.replace(str(Path.home()), "~")
    text = f"{WHAT_TO_SEND}\n\n{now:%Y-%m-%d %H:%M:%S} UTC\n{as_text(versions())}\n\n{plain}\n"
    try:
        where.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(str(Path.home()), "~"), encoding="utf-8")
        for old in sorted(where.glob("error-*.txt"))[:-KEPT]:
            with contextlib.suppress(OSError):
                old.unlink()
    except OSError:
        with contextlib.suppress(OSError):  # half a file would be sent for a whole one
            path.unlink(missing_ok=True)
        return None
    return path


class NativeCrashes:
    """While it is on, a crash of native code leaves its stack in a file of this process."""

    def __init__(self, where: Path | None = None) -> None:
        self.where = where or folder()
        self._file: IO[str] | None = None

    def begin(self) -> Path | None:
        """Collect what an earlier process left, as a file to send (or None); then watch this one."""
        found = self._collect()
        with contextlib.suppress(OSError):
            self.where.mkdir(parents=True, exist_ok=True)
            self._file = (self.where / f"{NATIVE}{os.getpid()}.txt").open("w", encoding="utf-8")
            faulthandler.enable(self._file)
        return found

    def _collect(self) -> Path | None:
        """The newest of the stacks that processes left that are no longer there."""
        newest: Path | None = None
        for left in sorted(self.where.glob(f"{NATIVE}*.txt")):
            if _runs(left.stem.removeprefix(NATIVE)):
                continue
            with contextlib.suppress(OSError):
                with open_regular(left) as file:
                    stack = file.read(LONGEST).decode("utf-8", "replace")
                newest = (
                    write(f"The window crashed in native code.\n{stack}", self.where) if stack else None
                ) or newest
                left.unlink()
        return newest

    def end(self) -> None:
        """The window was closed: nothing crashed."""
        if self._file is None:
            return
        faulthandler.disable()
        with contextlib.suppress(OSError):
            self._file.close()
            Path(self._file.name).unlink(missing_ok=True)
        self._file = None


def _runs(pid: str) -> bool:
    """Whether a process with this id is there: another window that is open."""
    if not pid.isdecimal() or int(pid) == os.getpid():
        return False
    if os.name == "nt":  # a signal would end it there; its file cannot be removed while it is open
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):  # no system numbers its processes so far
        return False
    except OSError:
        return True
    return True
