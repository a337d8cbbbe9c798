"""The files of a capture that is being written: page bytes first, then one transaction of index rows.

A capture that is replaced stays as it is until the new run has its first pages. These go to page files of other
numbers, and then one transaction empties the old index, describes the new run and commits its first rows: whatever
happens, even a kill, the folder holds the old capture or the new one. The index file stays the same file, so that
whoever has it open sees the change as any other commit.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inspector.capture.layout import (
    ALIGN,
    INDEX,
    MAX_JSON,
    ROLL_BYTES,
    TABLES,
    CaptureError,
    aligned,
    page_file,
    schema,
)
from inspector.capture.owner import own_lease
from inspector.capture.target import busy, index_files, is_damage, is_leased, page_files
from inspector.records import Channel, Frame, Page, RunStart, RunStop, encoded

PAGE_FILES = 10_000
Place = tuple[int, int, int, int]
"""Where a page's bytes lie: file, offset, length, CRC-32."""
_LOST: list[sqlite3.Connection] = []
"""Connections to captures that were moved or removed while they were written. They are never closed: SQLite would
remove the write-ahead log by its name, and what bears that name now may be another capture's."""


class Store:
    """The files of a capture, used by the writer's thread alone. `replaces`: a capture lies there that will go."""

    def __init__(self, path: Path, start: RunStart, *, replaces: bool) -> None:
        self.path = path.absolute()  # the model may change the working directory
        self.start = start
        self.begun = False
        self.channels: dict[str, tuple[int, Channel]] = {}
        self.number = -1
        self._lease = own_lease()
        self._early: list[Any] = []
        self._next_ids: dict[str, int] = {}
        self._identity: tuple[int, int] | None = None
        self.index: sqlite3.Connection | None = None
        self.file: BinaryIO | None = None
        if not replaces:
            self._begin_anew()

    # -- beginning

    def _begin_anew(self) -> None:
        """A capture with nothing in it but how the run began, in a folder where there is none."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        index = self._connect("rwc")
        try:
            index.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            index.close()
            raise
        try:
            if index.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise busy(self.path)
            self._describe()
            index.execute("COMMIT")
        except BaseException:
            self._let_go()
            raise
        self._settle()

    def _connect(self, mode: str) -> sqlite3.Connection:
        keep_standard_files_open()
        uri = f"{(self.path / INDEX).absolute().as_uri()}?mode={mode}"
        self.index = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=5.0)
        return self.index

    def _describe(self) -> None:
        """The tables, the start of the run and the lease, within the transaction that is open.

        The application id thereby lies in the file itself and not in its write-ahead log: a killed run's too is known.
        """
        index = self._open()
        for statement in schema().split(";\n"):
            index.execute(statement)
        for data in encoded(self.start, MAX_JSON):
            self._insert("run", record=data.decode())
        self._insert("lease", **dict(zip(("pid", "started", "token"), self._lease, strict=True)))

    def _settle(self) -> None:
        """From here on readers and the writer do not wait for each other."""
        index = self._open()
        with contextlib.suppress(sqlite3.OperationalError):  # a reader that holds on: then they wait for each other
            index.execute("PRAGMA journal_mode=WAL")
        index.execute("PRAGMA synchronous=NORMAL")
        self._identity = _identity(self.path / INDEX)
        self.begun = True

    def _let_go(self) -> None:
        """After a beginning that failed: an index without a byte in it would only be in the way."""
        self._open().close()
        self.index = None
        with contextlib.suppress(OSError):
            if (self.path / INDEX).stat().st_size == 0:
                (self.path / INDEX).unlink()
                self.path.rmdir()

    def _open(self) -> sqlite3.Connection:
        assert self.index is not None
        return self.index

    # -- one transaction

    def commit(self, records: list[Any]) -> None:
        """Append the pages of `records`, then commit all their rows in one transaction."""
        if not self.begun:
            self._early += records
            if not any(map(_counts, records)):
                return
            records, self._early = self._early, []
        if not records:
            return
        if not self.begun:
            self._replace(records)
            return
        try:
            placed = self._places(records)
        except OSError:
            words = [record for record in records if not isinstance(record, Page)]
            self._commit_rows(words, [None] * len(words))  # a full disk may still have room for what was said
            raise
        self._commit_rows(records, placed)

    def _places(self, records: list[Any]) -> list[Place | None]:
        """Append the bytes of all pages; where each lies."""
        placed = [self._place(record) if isinstance(record, Page) else None for record in records]
        if self.file is not None:
            self.file.flush()
        return placed

    def _commit_rows(self, records: list[Any], placed: list[Place | None]) -> None:
        index = self._open()
        self._check_folder()
        index.execute("BEGIN IMMEDIATE")
        try:
            if index.execute("SELECT token FROM lease").fetchall() != [(self._lease[2],)]:
                raise busy(self.path)
            self._rows(records, placed)
            index.execute("COMMIT")
        except BaseException:
            index.execute("ROLLBACK")
            raise

    def _rows(self, records: list[Any], placed: list[Place | None]) -> None:
        for record, place in zip(records, placed, strict=True):
            self._row(record, place)

    def _check_folder(self) -> None:
        """SQLite goes on writing to a file that was removed or moved; nobody would find the numbers again."""
        now = _identity(self.path / INDEX)
        if now != self._identity and not self._is_mine():
            raise CaptureError(
                f"{self.path} was removed, moved or replaced while the run was writing to it; the capture ends there."
            )
        self._identity = now

    def _is_mine(self) -> bool:
        """Whether the index that lies at the path now is the one that is written: some disks number files anew."""
        try:
            other = sqlite3.connect(f"{(self.path / INDEX).absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
            try:
                return bool(other.execute("SELECT token FROM lease").fetchall() == [(self._lease[2],)])
            finally:
                other.close()
        except sqlite3.Error:
            return False

    # -- taking the place of another capture

    def _replace(self, records: list[Any]) -> None:
        """In one transaction the old capture goes and the new one is there with its first rows."""
        try:
            placed = self._places(records)
            index = self._connect("rw")
            try:
                index.execute("BEGIN IMMEDIATE")
                if is_leased(index):
                    raise busy(self.path)
                self._empty()
                self._describe()
            except sqlite3.DatabaseError as problem:
                if not is_damage(problem):
                    raise
                self._clear_damaged()
            self._rows(records, placed)
            self._open().execute("COMMIT")
        except BaseException:
            self._abandon()
            raise
        self._settle()
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads: the free pages stay, which is no harm
            self._open().execute("VACUUM")
        for number, path in page_files(self.path).items():
            if number != self.number:
                with contextlib.suppress(OSError):  # open in another program, on Windows
                    path.unlink()

    def _empty(self) -> None:
        """Drop all there is. Numbers of rows go on from where they were, so that a reader notices the new ones."""
        index = self._open()
        found = index.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite#_%' ESCAPE '#'")
        objects = found.fetchall()
        tables = {name for kind, name in objects if kind == "table"}
        for table in TABLES.keys() & tables:
            with contextlib.suppress(sqlite3.OperationalError):  # no column of that name: no capture of ours wrote it
                highest = index.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
                self._next_ids[table] = (highest if isinstance(highest, int) else 0) + 1
        for wanted in ("trigger", "view", "table"):
            for kind, name in objects:
                if kind == wanted:
                    quoted = str(name).replace('"', '""')
                    index.execute(f'DROP {wanted} IF EXISTS "{quoted}"')

    def _clear_damaged(self) -> None:
        """An index that SQLite cannot change is of no use to anybody: it goes, as was asked for; a new one comes."""
        self._open().close()
        for path in index_files(self.path):
            path.unlink()
        self._next_ids.clear()
        index = self._connect("rwc")
        index.execute("BEGIN EXCLUSIVE")
        self._describe()

    def _abandon(self) -> None:
        """The old capture stays; what was written for the new one goes."""
        if self.index is not None:
            with contextlib.suppress(sqlite3.Error):
                self.index.execute("ROLLBACK")
            self.index.close()
            self.index = None
        if self.file is not None:
            self.file.close()
            self.file = None
            (self.path / page_file(self.number)).unlink(missing_ok=True)

    # -- pages

    def _place(self, page: Page) -> Place:
        array = page.array.astype(page.array.dtype.newbyteorder("<"), copy=False)
        flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        view = memoryview(flat)
        file = self._file_for(len(view))
        gap = aligned(file.tell()) - file.tell()
        if gap:
            file.write(bytes(gap))
        position = file.tell()
        file.write(view)
        assert position % ALIGN == 0
        return self.number, position, len(view), zlib.crc32(view)

    def _file_for(self, size: int) -> BinaryIO:
        """The page file that the next bytes go to: the present one, or a new one where that is full."""
        if self.file is not None and (not self.file.tell() or self.file.tell() + size <= ROLL_BYTES):
            return self.file
        if self.file is not None:
            self.file.close()
        keep_standard_files_open()
        taken = page_files(self.path)
        first = max(taken, default=-1) + 1 if self.number < 0 else self.number + 1
        for step in range(PAGE_FILES):
            number = (first + step) % PAGE_FILES
            if number not in taken:
                with contextlib.suppress(FileExistsError):
                    self.file = (self.path / page_file(number)).open("xb")
                    self.number = number
                    return self.file
        raise CaptureError(f"{self.path} has no name left for another page file.")

    # -- rows

    def _row(self, record: Any, place: Place | None) -> None:
        if isinstance(record, Page):
            assert place is not None
            self._page_row(record, place)
        elif isinstance(record, Channel):
            self._channel_row(record)
        else:
            for data in encoded(record, MAX_JSON):
                text = data.decode()
                if isinstance(record, (Frame, RunStop)):
                    self._insert("frames" if isinstance(record, Frame) else "run", record=text)
                else:
                    self._insert("notes", kind=type(record).__name__, record=text)

    def _channel_row(self, channel: Channel) -> None:
        if channel.name not in self.channels:
            (data,) = encoded(channel, MAX_JSON)
            name = channel.name.encode("utf-8", "backslashreplace").decode()
            self.channels[channel.name] = (self._insert("channels", name=name, record=data.decode()), channel)

    def _page_row(self, page: Page, place: Place) -> None:
        if page.channel not in self.channels:
            raise ValueError(f"a page of {page.channel!r} was written before its channel was declared")
        number, channel = self.channels[page.channel]
        array = page.array
        if str(array.dtype.newbyteorder("=")) != channel.dtype or array.ndim != len(channel.dims):
            raise ValueError(
                f"a page of {channel.name} is {array.dtype}{array.shape}; declared: {channel.dtype} {channel.dims}"
            )
        file, offset, nbytes, crc = place
        self._insert(
            "pages", channel=number, frame=page.frame, file=file, offset=offset, nbytes=nbytes,
            start=json.dumps(page.offset), shape=json.dumps(array.shape), crc=crc,
        )  # fmt: skip

    def _insert(self, table: str, **values: Any) -> int:
        """A row; its number. The first row of a table goes on behind those of the capture that was replaced."""
        if table in self._next_ids:
            values["id"] = self._next_ids.pop(table)
        marks = ", ".join("?" * len(values))
        cursor = self._open().execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    # -- the end

    def close(self) -> None:
        """End WAL mode so that the finished capture opens on read-only media; give up the lease."""
        try:
            if self.file is not None:
                self.file.close()
            if self.begun:
                self._give_up_lease()
        finally:
            if self.index is not None and self.index not in _LOST:
                self.index.close()

    def _give_up_lease(self) -> None:
        index = self._open()
        index.execute("DELETE FROM lease WHERE token = ?", (self._lease[2],))
        if _identity(self.path / INDEX) != self._identity:
            _LOST.append(index)
            return
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.suppress(sqlite3.OperationalError):  # with a reader open it stays in WAL mode
            index.execute("PRAGMA journal_mode=DELETE")


def _counts(record: Any) -> bool:
    """Whether a record is worth a capture: numbers, or the end of a run that had none to show."""
    return isinstance(record, Page) or (isinstance(record, RunStop) and record.status == "done")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def keep_standard_files_open() -> None:
    """Point descriptors 0 to 2 to nowhere where a model has closed them: a file of ours that got such a number would
    receive whatever is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
