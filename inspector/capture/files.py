"""One file that another program may truncate, overwrite or replace while it is read.

It is read piece by piece into private memory, never mapped: a mapped file that is truncated ends the process with
SIGBUS.
"""

from __future__ import annotations

import os
import threading
from io import FileIO
from pathlib import Path
from typing import Literal, NamedTuple

from inspector.capture.regular import in_words, open_unbuffered
from inspector.records.unreadable import why_unreadable

PIECE = 256 << 10
"""Bytes that are read at once: a tenth of a millisecond from memory, and acceptable from a slow disk."""
Change = Literal["same", "grown", "other"]


class Signature(NamedTuple):
    """The attributes that change when a file does."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> Signature:
        """From the system's `stat`."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class GuardedFile:
    """A file that is opened when it is first read, and checked again on request. `name` is for messages."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.problem = ""
        """Why it cannot be read at all, as the end of a sentence; "" when it can."""
        self._file: FileIO | None = None
        self._known: Signature | None = None
        self._suspected: Signature | None = None
        self._seen = 0
        """Bytes that it had at least once since it was opened; reading finds out where it has fewer now."""
        self._lock = threading.Lock()
        self._finished = False

    def read_into(self, offset: int, room: memoryview) -> bool:
        """Fill `room` with the bytes from an offset on; False where the file ends before, or cannot be read.

        Position and reading go together under a lock: that works on every system alike, and a piece is small.
        """
        file = self._open()
        if file is None:
            return False
        with self._lock:
            try:
                file.seek(offset)
                while len(room):
                    count = file.readinto(room[:PIECE])
                    if not count:
                        return False
                    room = room[count:]
            except (OSError, ValueError, OverflowError) as problem:
                self.problem = why_unreadable(problem)
                return False
            finally:
                if self._finished:
                    self._let_go()
        return True

    def _open(self) -> FileIO | None:
        if self._file is None:
            try:
                self._file = open_unbuffered(self.path)
                self._known, self.problem = Signature.of(os.fstat(self._file.fileno())), ""
            except OSError as problem:
                self.problem = in_words(problem)
        return self._file

    def holds(self, end: int) -> bool:
        """Whether the file has this many bytes, or had when it was asked before."""
        file = self._open()
        if file is not None and self._seen < end:
            self._seen = os.fstat(file.fileno()).st_size
        enough = file is not None and self._seen >= end
        if self._finished:
            self._let_go()
        return enough

    def touched(self) -> bool:
        """Whether anything but growth has happened to the open file since the last check; takes a microsecond."""
        if self._file is None or self._known is None:
            return False
        present = Signature.of(os.fstat(self._file.fileno()))
        return present.size < self._known.size or (
            present.size == self._known.size and present.changed != self._known.changed
        )

    def look(self) -> Change:
        """Whether the file only grew, as the file of a run in progress does, or is another one since the last check.

        A file that was replaced under its name is opened again. A folder that was renamed changes nothing: what is
        open stays readable. A file that grew is taken to be appended to, as a run does; one that was overwritten and
        made longer between two checks is taken for that, until its pages are read again.
        """
        if self._file is None:  # not needed so far, or it could not be opened: perhaps now
            return "other" if self.problem and self._open() is not None else "same"
        present = Signature.of(os.fstat(self._file.fileno()))
        if self._replaced(present):
            self._let_go()
            self._open()
            return "other"
        change = self._compared(present)
        if change != "same":
            self._known, self._suspected, self.problem = present, None, ""
        return change

    def _replaced(self, present: Signature) -> bool:
        try:
            there = self.path.stat()
        except OSError:
            return False
        return (there.st_dev, there.st_ino) != (present.device, present.inode)

    def _compared(self, present: Signature) -> Change:
        """A new time at the same size counts at the second check: while bytes are being appended, the system
        may show their time before it shows their number."""
        known = self._known
        assert known is not None
        if present.size > known.size:
            return "grown"
        if present.size < known.size:
            return "other"
        if present.changed == known.changed:
            return "same"
        twice = present == self._suspected
        self._suspected = present
        return "other" if twice else "same"

    def close(self) -> None:
        """Close it; a later read, by a plot that is about to be replaced, opens it for a moment."""
        self._finished = True
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._seen = None, 0

    def __del__(self) -> None:
        """A capture that was not closed leaves no file open."""
        self._let_go()
