"""A connection to the index of a capture of unknown origin that may still be written: read-only and bounded.

An index without a write-ahead log is read in place, under SQLite's locks. One with a log is read from a private
copy (`snapshot.py`), since SQLite would map a file that another program may truncate.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from inspector.capture.layout import INDEX, MAX_JSON, BusyError, CaptureError
from inspector.capture.regular import in_words, regular_stat
from inspector.capture.snapshot import JOURNAL, SHM, WAL, PrivateCopy, beside, has_log
from inspector.records.unreadable import why_unreadable

BESIDE = (WAL, SHM, JOURNAL)
"""What SQLite opens by itself beside an index."""
BEING_MADE = 1.0
"""Seconds after which an index without content is no longer taken for one that another program is making: SQLite's
file is empty until its first change is stored."""
LOCK_SECONDS = 0.05
"""Seconds that a read waits for a lock: a window tries again at its next tick."""


class Connection:
    """SQLite's connection and what it reads: the index itself, or a private copy. Raises CaptureError."""

    def __init__(self, index: Path, *, wait: float = 0.0) -> None:
        """Connect; for `wait` seconds again where the index is locked, as while a run begins or ends."""
        self.index = index
        self.deadline = 0.0
        """When the query in progress is given up (`time.thread_time`: a busy machine makes no query wrong); 0 for
        never."""
        self._copy: PrivateCopy | None = None
        self.sqlite: sqlite3.Connection | None = None
        try:
            self.connect(wait)
        except BaseException:
            self.close()  # the private copy: nobody else knows of it yet
            raise

    @property
    def is_private(self) -> bool:
        """Whether a private copy is read, which shows nothing new until it is made again."""
        return self._copy is not None

    def connect(self, wait: float = 0.0) -> sqlite3.Connection:
        """Connect again to the index as it is now. Raises BusyError, or CaptureError where it cannot be read."""
        self.disconnect()
        end = time.monotonic() + wait
        while True:
            try:
                check_files(self.index, opening=wait > 0)
                self.sqlite = self._tried()
                return self.sqlite
            except BusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)

    def _tried(self) -> sqlite3.Connection:
        name = self.index.parent.name
        try:
            if not has_log(self.index):
                try:
                    return self._first_read(self._in_place())
                except sqlite3.OperationalError as problem:
                    if is_locked(problem):
                        raise BusyError(f"The index of {name} is locked ({problem}).") from None
            return self._first_read(self._copied())
        except OSError as problem:  # of the private copy, mostly: nothing is wrong with the capture
            where = f" ({problem.filename})" if problem.filename else ""
            raise CaptureError(f"The index of {name} cannot be read: {in_words(problem)}{where}.") from None
        except (sqlite3.Error, UnicodeDecodeError) as problem:
            raise CaptureError(
                f"The index of {name} cannot be read ({why_unreadable(problem)}); the capture is damaged."
            ) from None

    def _in_place(self) -> sqlite3.Connection:
        self._forget_copy()
        return _opened(f"{self.index.absolute().as_uri()}?mode=ro")

    def _copied(self) -> sqlite3.Connection:
        """With a log; and where half a change has to be undone, which takes a file that may be written."""
        if self._copy is None:
            self._copy = PrivateCopy(self.index)
        self._copy.update()
        undo = beside(self._copy.path, JOURNAL).exists()
        return _opened(f"{self._copy.path.as_uri()}?mode={'rw' if undo else 'ro'}")

    def _first_read(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        try:
            self._harden(connection)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _harden(self, connection: sqlite3.Connection) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * MAX_JSON)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.set_progress_handler(lambda: int(bool(self.deadline) and time.thread_time() > self.deadline), 20_000)

    def close(self) -> None:
        """Close the connection and remove the private copy, if there is one."""
        self.disconnect()
        self._forget_copy()

    def disconnect(self) -> None:
        """Close the connection; the private copy stays for the next one."""
        if self.sqlite is not None:
            self.sqlite.close()
            self.sqlite = None

    def _forget_copy(self) -> None:
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def __enter__(self) -> sqlite3.Connection:
        assert self.sqlite is not None
        return self.sqlite

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, check_same_thread=False)


def is_locked(problem: BaseException) -> bool:
    """Whether SQLite reports that another process has locked a file."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def check_files(index: Path, *, opening: bool = False) -> None:
    """Reject anything but an ordinary file before SQLite opens it and waits forever.

    Raises CaptureError; BusyError, while a capture is being opened, for an index that was made a moment ago and is
    empty as yet.
    """
    folder = index.parent
    try:
        found = regular_stat(index)
    except FileNotFoundError:
        raise CaptureError(f"{folder} is not a capture: it holds no {INDEX}.") from None
    except OSError as problem:
        raise CaptureError(f"{index} cannot be read: {in_words(problem)}.") from None
    if found.st_size == 0:
        if opening and abs(time.time() - found.st_mtime) < BEING_MADE:
            raise BusyError(f"{folder} is being made: its {INDEX} is empty so far.")
        raise CaptureError(f"{folder} is an empty capture: its run was killed as it began, or the disk was full.")
    check_beside(index)


def check_beside(index: Path) -> None:
    """Reject anything but an ordinary file where SQLite opens a file beside an index. Raises CaptureError."""
    for suffix in BESIDE:  # beside the file that a link leads to, for that is where SQLite looks
        for path in {index.with_name(INDEX + suffix), Path(os.path.realpath(index) + suffix)}:
            try:
                regular_stat(path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                raise CaptureError(f"{path} cannot be read: {in_words(problem)}.") from None
