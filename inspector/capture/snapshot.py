"""A private copy of an index and its write-ahead log, as they are at one moment of a run that may still be writing.

SQLite maps a file beside an index whose log is in use (`index.sqlite-shm`); where another program truncates that file,
every process that has it mapped ends with SIGBUS. Beside a private copy no other program does so.

Why a copy that is taken while the writer writes is consistent: the log only grows until a checkpoint has brought all of
it into the index and the next commit begins a new log with another header. The index is copied first, then the log; if
the log's header is the same before and after, then whatever a checkpoint had brought into the copied index meanwhile is
in the copied log too, and SQLite reads it from there. A commit that was copied partly is detected by SQLite from its
checksums, and is left out as if it had not begun.

Closing a file gives up the POSIX locks that the own process holds on it. Where a process writes a capture and reads it
too, the lock of its writer is lost with the first copy: a writer is therefore detected by the lease in the index, which
every writer checks before it begins, and the lock only makes that quicker.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from inspector.capture.files import Signature
from inspector.capture.layout import INDEX, BusyError, CaptureError
from inspector.capture.regular import open_regular

WAL, SHM, JOURNAL = "-wal", "-shm", "-journal"
LOG_HEADER = 32
MODE_AT = 18
"""Where the header of an SQLite file says how it is written: 2 with a write-ahead log, 1 with a rollback journal."""
ATTEMPTS = 8
SMALL = 64 << 20
"""Bytes that are copied without looking for room: a refresh takes milliseconds."""
MOST_INDEX, MOST_LOG = 8 << 30, 2 << 30
"""Bytes of an index and of a log that are copied: a reader that holds a long one up makes it some 260 MB long, and a
file with a hole may claim any length."""


class State(NamedTuple):
    """The attributes that change with a commit to an index: those of the file, or of its log.
    None where there is no such file."""

    main: Signature | None
    log: Signature | None

    @classmethod
    def of(cls, index: str, log: str) -> State:
        """The present state; it takes some microseconds, therefore the names are precomputed strings."""
        return cls(_signature(index), _signature(log))


def beside(index: Path, suffix: str) -> Path:
    """The file that SQLite keeps beside an index, at the index itself and not at a link to it."""
    return Path(os.path.realpath(index) + suffix)


def has_log(index: Path) -> bool:
    """Whether SQLite would read an index together with a write-ahead log, and map a file for it."""
    log = _signature(beside(index, WAL))
    if log is not None and log.size:
        return True
    with open_regular(index) as file:
        return file.read(MODE_AT + 2)[MODE_AT:] == b"\2\2"


class PrivateCopy:
    """The copy of one index in a temporary folder that only its user can enter.
    Raises OSError where the disk has no space."""

    def __init__(self, index: Path) -> None:
        self._source = index
        self._folder = tempfile.TemporaryDirectory(prefix="inspector-")
        self._log: bytes | None = None
        self.path = Path(self._folder.name) / INDEX
        self._own = {suffix: beside(self.path, suffix) for suffix in ("", WAL, JOURNAL, SHM)}

    def update(self) -> None:
        """Copy what changed. Raises BusyError where the index changes more quickly than it is copied."""
        for _ in range(ATTEMPTS):
            before, index = self._header(), _signature(self._source)
            if not before or before != self._log:
                self._copy("")
            for suffix in (WAL, JOURNAL):
                self._copy(suffix)
            if self._header() == before and (before or _signature(self._source) == index):
                self._log = before
                self._own[SHM].unlink(missing_ok=True)  # it describes the copy before this one
                return
        raise BusyError(f"The index of {self._source.parent.name} changes too quickly to be read.")

    def _header(self) -> bytes:
        """The first bytes of the log, which differ from log to log; b"" where there is none."""
        try:
            with open_regular(beside(self._source, WAL)) as log:
                return log.read(LOG_HEADER)
        except FileNotFoundError:
            return b""

    def _copy(self, suffix: str) -> None:
        """Over the copy before: emptying that first costs more than all the rest of a refresh."""
        target = self._own[suffix]
        try:
            with (
                open_regular(beside(self._source, suffix)) as source,
                target.open("r+b" if target.exists() else "wb") as file,
            ):
                self._require_room(suffix, os.fstat(source.fileno()).st_size)
                shutil.copyfileobj(source, file, 1 << 20)
                file.truncate()
        except FileNotFoundError:
            if not suffix:
                raise
            target.unlink(missing_ok=True)

    def _require_room(self, suffix: str, size: int) -> None:
        """Raises CaptureError for a file that no writer makes, and where the disk has no room for the copy."""
        name, most = f"{self._source.parent.name}/{INDEX}{suffix}", MOST_LOG if suffix else MOST_INDEX
        if size > most:
            raise CaptureError(f"{name} has {size:,} bytes; at most {most:,} are read.")
        if size > SMALL and size > shutil.disk_usage(self._folder.name).free:
            raise CaptureError(f"{name} has {size:,} bytes, for a copy of which {self._folder.name} has no room.")

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()


def _signature(path: Path | str) -> Signature | None:
    try:
        return Signature.of(os.stat(path))  # noqa: PTH116 - many times a second
    except OSError:
        return None
