"""The rows of an index of unknown origin, read as they were at one moment."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.capture.connection import Connection, is_locked
from inspector.capture.layout import (
    APPLICATION_ID,
    INDEX,
    MAJOR,
    MINOR,
    OLDEST,
    TABLES,
    BusyError,
    CaptureError,
    NewerVersionError,
)
from inspector.capture.snapshot import WAL, State, beside
from inspector.capture.turns import give_way
from inspector.records.unreadable import why_unreadable

PATIENCE = 5.0
"""Seconds of processor time after which one query of an index is interrupted: no valid index needs a tenth of it."""
OPENING = 2.0
"""Seconds for which an index that is locked is tried again when it is opened."""
_NUMBER = "CASE typeof({0}) WHEN 'integer' THEN {0} END"
_PAGES = ", ".join(
    (*map(_NUMBER.format, ("channel", "frame", "file", "offset", "nbytes")), "substr(start, 1, 201)",
     "substr(shape, 1, 201)", _NUMBER.format("crc"))
)  # fmt: skip
"""A forged cell may hold megabytes in each of 100,000 rows: what no page has is not fetched."""
NEWS = {
    "run": "record", "channels": "record, name", "frames": "record", "notes": "record, kind", "pages": _PAGES,
}  # fmt: skip
"""Table → the columns that a reader uses, with the id before and the checksum after them."""
Rows = list[tuple[Any, ...]]


ROWS = 100
"""That are fetched between two pauses: about 0.3 ms."""


class Index:
    """The index of a capture, read-only and hardened against hostile content. Raises CaptureError.

    `major` is the major version of its format; rows of format 1 have None for a checksum.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / INDEX
        self.major = MAJOR
        self._files = str(self.path), str(beside(self.path, WAL))
        self._state = State.of(*self._files)
        self._open = Connection(self.path, wait=OPENING)
        self._version = -1
        self._identity = self._state.main and self._state.main[:2]
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """SQLite's connection. Raises CaptureError where the last attempt to connect failed."""
        if self._open.sqlite is None:
            raise CaptureError(f"The index of {self.path.parent.name} cannot be read.")
        return self._open.sqlite

    def _check(self) -> None:
        application, version = self._pragma("application_id"), self._pragma("user_version")
        name = self.path.parent.name
        if application != APPLICATION_ID:
            raise CaptureError(f"{name} is an SQLite file of another program, not a capture.")
        if version // 1000 > MAJOR:
            raise NewerVersionError(
                f"{name} has format {version // 1000}.{version % 1000}; this program reads up to {MAJOR}.{MINOR}: "
                "update it to open this capture."
            )
        self.major = version // 1000
        found = {(kind, table) for kind, table in self.rows("SELECT type, name FROM sqlite_master")}
        wanted = {("table", table) for table in TABLES}
        strange = {(k, t) for k, t in found if k != "index" and k != "table"}
        if strange or not wanted <= found:
            tables = ", ".join(sorted(str(table) for _, table in strange or wanted - found))[:100]
            raise CaptureError(
                f"{name} does not have the tables of a capture ({'beyond them' if strange else 'it lacks'}: {tables}); "
                "it was damaged or made by another program."
            )
        if self.major < OLDEST or self._has_checksums() is (self.major < 2):
            raise CaptureError(f"{name} is said to have format {version // 1000}.{version % 1000}; it is damaged.")

    def _has_checksums(self) -> bool:
        return any(column[1] == "checksum" for column in self.rows("PRAGMA table_info(pages)"))

    def _pragma(self, name: str) -> int:
        return int(self.rows(f"PRAGMA {name}")[0][0])

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> Rows:
        """All rows of a query, fetched at once so that no lock is held longer.

        Raises BusyError where the index is locked, else CaptureError.
        """
        connection = self.connection
        self._open.deadline = time.thread_time() + PATIENCE
        try:
            return _fetched(connection.execute(query, values))
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as problem:
            busy = is_locked(problem)
            what = "locked" if busy else "damaged"
            sentence = f"The index of {self.path.parent.name} is {what} ({why_unreadable(problem)})."
            raise (BusyError if busy else CaptureError)(sentence) from None
        finally:
            self._open.deadline = 0.0

    def since(self, seen: Mapping[str, int]) -> dict[str, Rows]:
        """By table the rows after those that were seen, id first and checksum last, all as they were at one moment.

        The lease is returned completely. A commit between two of these queries shows in none of them. The read
        transaction always ends here: left open, it would block the writer.
        """
        self._renew()
        self.rows("BEGIN")
        try:
            version = self._data_version()
            checksum = "checksum" if self.major > 1 else "NULL"
            found = {}
            for table, columns in NEWS.items():
                query = f"SELECT id, {columns}, {checksum} FROM {table} WHERE id > ? ORDER BY id"
                found[table] = self.rows(query, (seen[table],))
            found["lease"] = self.rows("SELECT pid, started FROM lease")
        finally:
            with contextlib.suppress(sqlite3.Error):
                self.connection.rollback()
        self._version = version
        return found

    def _renew(self) -> None:
        """Connect again where the files changed. An index that replaced the open one is not followed:
        it would be another capture."""
        state = State.of(*self._files)
        same = state == self._state and self._open.sqlite is not None
        if same or state.main is None or self.replaced(state):
            return
        try:
            self._open.connect()
            self._check()
        except CaptureError:
            self._open.disconnect()
            raise
        self._state = state

    def changed(self) -> bool:
        """Whether another connection has committed since `since`; takes some microseconds. Raises CaptureError."""
        state = State.of(*self._files)
        if state.main is None or self.replaced(state):
            return False
        return state != self._state or (not self._open.is_private and self._data_version() != self._version)

    def _data_version(self) -> int:
        return int(self.rows("PRAGMA data_version")[0][0])

    def replaced(self, state: State | None = None) -> bool:
        """Whether another file is now where the index was opened; False for a folder that was renamed or removed."""
        index = (state or State.of(*self._files)).main
        return index is not None and index[:2] != self._identity

    def gone(self) -> bool:
        """Whether no index is any more where it was opened: its folder was removed or renamed, perhaps for a moment."""
        return State.of(*self._files).main is None

    def close(self) -> None:
        """Close the connection and remove the private copy, if there was one."""
        self._open.close()


def _fetched(cursor: sqlite3.Cursor) -> Rows:
    """All rows, some at a time."""
    found: Rows = []
    while part := cursor.fetchmany(ROWS):
        found += part
        give_way(locked=True)
    return found
