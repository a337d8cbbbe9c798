"""Opening the index of a capture that anybody may have made: read-only, bounded, and checked before it is believed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture.layout import (
    APPLICATION_ID,
    INDEX,
    MAJOR,
    MAX_ELEMENTS,
    MAX_JSON,
    MINOR,
    TABLES,
    CaptureError,
    NewerVersionError,
    elements,
)
from inspector.capture.regular import in_words, open_regular, regular_stat
from inspector.records import BadRecordError, decode

PATIENCE = 5.0
"""Seconds after which one query of an index is given up: no honest index needs a tenth of it."""
BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite opens by itself beside an index."""
NEWS = {
    "run": "record", "frames": "record", "channels": "record", "notes": "record",
    "pages": "channel, frame, file, offset, nbytes, start, shape, crc",
}  # fmt: skip
"""Table → the columns that a reader takes in, beside the id."""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class PageRow:
    """One committed page: where its bytes lie and where in the channel's array they belong."""

    id: int
    channel: int
    frame: int
    file: int
    offset: int
    nbytes: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    crc: int


class BusyError(CaptureError):
    """The index is locked for the moment: to be tried again."""


class Index:
    """A read-only connection to an index, hardened against hostile content. Raises CaptureError."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / INDEX
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._deadline = 0.0
        check_files(self.path)
        self._identity = _identity(self.path)
        self.connection = self._connect()
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        for attempt in (self._live, self._copied):
            try:
                return _tried(attempt())
            except sqlite3.OperationalError as problem:
                last: Exception = problem
            except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as problem:
                last = problem
                break
        self._forget_copy()
        raise CaptureError(f"The index of {self.path.parent.name} cannot be read ({last}); the capture is damaged.")

    def _live(self) -> sqlite3.Connection:
        return self._harden(sqlite3.connect(_uri(self.path), uri=True, timeout=2.0, check_same_thread=False))

    def _copied(self) -> sqlite3.Connection:
        """A read-only medium cannot hold the WAL's shared memory: work on a copy, left-over -wal included."""
        self._temporary = tempfile.TemporaryDirectory(prefix="inspector-")
        copy = Path(self._temporary.name) / INDEX
        for suffix in ("", "-wal", "-journal"):
            source = self.path.with_name(INDEX + suffix)
            if source.exists():
                with open_regular(source) as old, copy.with_name(INDEX + suffix).open("wb") as new:
                    shutil.copyfileobj(old, new)
        return self._harden(sqlite3.connect(copy, check_same_thread=False))

    def _harden(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * MAX_JSON)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA mmap_size=0")
        connection.set_progress_handler(lambda: int(bool(self._deadline) and time.monotonic() > self._deadline), 20_000)
        return connection

    def _check(self) -> None:
        application = self._pragma("application_id")
        version = self._pragma("user_version")
        name = self.path.parent.name
        if application != APPLICATION_ID:
            raise CaptureError(f"{name} is an SQLite file of another program, not a capture.")
        if version // 1000 > MAJOR:
            raise NewerVersionError(
                f"{name} has format {version // 1000}.{version % 1000}; this program reads up to {MAJOR}.{MINOR}: "
                "update it to open this capture."
            )
        found = {(kind, table) for kind, table in self.rows("SELECT type, name FROM sqlite_master")}
        wanted = {("table", table) for table in TABLES}
        strange = {(k, t) for k, t in found if k != "index" and k != "table"}
        if strange or not wanted <= found:
            raise CaptureError(
                f"{name} does not have the tables of a capture; it was damaged or made by another program."
            )

    def _pragma(self, name: str) -> int:
        return int(self.rows(f"PRAGMA {name}")[0][0])

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Rows:
        """All rows of a query, fetched at once so that no cursor holds the write-ahead log back.

        Raises BusyError where the index is locked, else CaptureError.
        """
        self._deadline = time.monotonic() + PATIENCE
        try:
            return self.connection.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as problem:
            busy = getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            what = "locked" if busy else "damaged"
            sentence = f"The index of {self.path.parent.name} is {what} ({problem})."
            raise (BusyError if busy else CaptureError)(sentence) from None
        finally:
            self._deadline = 0.0

    def since(self, seen: Mapping[str, int]) -> tuple[int, dict[str, Rows]]:
        """(version, by table the rows after those that were seen, id first), all as they were at one moment.

        A commit that comes between two of these queries shows in none of them, and as another version afterwards.
        The read transaction ends here whatever happens: left open, it would hold the write-ahead log back.
        """
        self.rows("BEGIN")
        try:
            version = self.data_version()
            found = {
                table: self.rows(f"SELECT id, {columns} FROM {table} WHERE id > ? ORDER BY id", (seen[table],))
                for table, columns in NEWS.items()
            }
        finally:
            with contextlib.suppress(sqlite3.Error):
                self.connection.rollback()
        return version, found

    def data_version(self) -> int:
        """A number that changes when another connection commits; about 10 µs. Raises CaptureError."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def replaced(self) -> bool:
        """Whether another file stands where the index was opened; a folder that was renamed or removed is none."""
        return _identity(self.path) not in (self._identity, None)

    def close(self) -> None:
        """Close the connection and remove the private copy, if there was one."""
        self.connection.close()
        self._forget_copy()

    def _forget_copy(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def check_files(index: Path) -> None:
    """Refuse what is no ordinary file before SQLite opens it and waits for ever. Raises CaptureError."""
    folder = index.parent
    try:
        size = regular_stat(index).st_size
    except FileNotFoundError:
        raise CaptureError(f"{folder} is not a capture: it holds no {INDEX}.") from None
    except OSError as problem:
        raise CaptureError(f"{index} cannot be read: {in_words(problem)}.") from None
    if size == 0:
        raise CaptureError(f"{folder} is an empty capture: the disk was probably full when it was made.")
    check_beside(index)


def check_beside(index: Path) -> None:
    """Refuse what is no ordinary file in the place of a file that SQLite opens beside an index. Raises CaptureError."""
    for suffix in BESIDE:  # beside the file that a link leads to, for that is where SQLite looks
        for path in {index.with_name(INDEX + suffix), Path(os.path.realpath(index) + suffix)}:
            try:
                regular_stat(path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                raise CaptureError(f"{path} cannot be read: {in_words(problem)}.") from None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _tried(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, after its first read; closed again if that fails."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        connection.close()
        raise
    return connection


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


def read_record(text: Any, kind: type[Any], where: str) -> Any:
    """The record in a cell of the index. Raises CaptureError for anything else."""
    if not isinstance(text, str) or len(text) > 4 * MAX_JSON:
        raise CaptureError(f"A {where} of the index is not text.")
    try:
        record = decode(text)
    except BadRecordError as problem:
        raise CaptureError(f"A {where} of the index is damaged: {problem}") from None
    if not isinstance(record, kind):
        raise CaptureError(f"A {where} of the index is a {type(record).__name__}.")
    return record


def read_page(row: tuple[Any, ...], itemsize: int, ndim: int) -> PageRow:
    """A page row whose numbers are consistent with each other and with its channel. Raises CaptureError."""
    numbers = (*row[:6], row[8])
    if not all(type(number) is int and 0 <= number < 2**62 for number in numbers):
        raise CaptureError(f"Page {row[0]!r} has a damaged row.")
    start, shape = _ints(row[6]), _ints(row[7])
    if len(shape) != ndim or len(start) != ndim or elements(shape) * itemsize != row[5]:
        raise CaptureError(f"Page {row[0]} has {row[5]} bytes, which does not fit its shape {shape}.")
    if any(s + n > MAX_ELEMENTS for s, n in zip(start, shape, strict=True)) or elements(shape) > MAX_ELEMENTS:
        raise CaptureError(f"Page {row[0]} lies beyond any array.")
    return PageRow(row[0], row[1], row[2], row[3], row[4], row[5], start, shape, row[8])


def _ints(text: Any) -> tuple[int, ...]:
    if not isinstance(text, str) or len(text) > 200:
        raise CaptureError("A page has a damaged shape.")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise CaptureError("A page has a damaged shape.") from None
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**40 for v in values):
        raise CaptureError("A page has a damaged shape.")
    return tuple(values)
