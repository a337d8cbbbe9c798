"""The rows of an index that is being written: the rows of each record, and their numbers."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from inspector.capture.appending import Position
from inspector.capture.checksums import page_checksum, page_owner, record_checksum
from inspector.capture.layout import COUNTED, MAJOR, MAX_JSON, schema
from inspector.capture.placing import contradiction
from inspector.records import Channel, Frame, Page, RowCounts, RunStart, RunStop, decode, encoded

Lease = tuple[int, str, str]
Numbers = tuple[dict[str, int], int]


PIECE = 64
"""Rows that one statement inserts, where there are so many: each call of SQLite's lets other threads run."""


@dataclass(slots=True)  # a frozen one takes three times as long to make, and there are many
class PlacedPage:
    """What the index says of a page whose bytes have their place; the bytes themselves are no longer needed."""

    channel: str
    frame: int
    offset: tuple[int, ...]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    place: Position

    @classmethod
    def of(cls, page: Page, place: Position) -> PlacedPage:
        """The page without its numbers."""
        return cls(page.channel, page.frame, page.offset, page.array.dtype, page.array.shape, place)


class Rows:
    """Rows for the transaction that its connection is in. They are inserted by `store`, all of a table together."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self.index = index
        self._channels: dict[str, tuple[int, Channel, int]] = {}
        """Name → number of the description that applies, the description, and what its pages' checksums begin with."""
        self._described: dict[bytes, int] = {}
        self._frames: set[int] = set()
        self._first = dict.fromkeys(COUNTED, 1)
        self._next = dict(self._first)
        self._counted = -1
        self._run = ""
        self._new: dict[str, list[tuple[Any, ...]]] = {table: [] for table in COUNTED}

    def describe(self, start: RunStart, lease: Lease) -> None:
        """Write the tables, the run's start record, and the lease."""
        for statement in schema().split(";\n"):
            self.index.execute(statement)
        for data in encoded(start, MAX_JSON):
            self._record("run", data.decode())
        self._run = start.run
        self._lease(lease)
        self.count()

    def log_changes(self) -> None:
        """From now on changes go to a log, and each is on the disk when it is committed. Raises sqlite3.Error."""
        try:
            self.index.execute("PRAGMA locking_mode=EXCLUSIVE")
            self.index.execute("PRAGMA journal_mode=WAL")
            self.index.execute("PRAGMA wal_autocheckpoint=256")  # readers copy the log: it stays about a megabyte
            self.index.execute("PRAGMA journal_size_limit=0")  # the log's size changes with each commit: it is noticed
        except sqlite3.OperationalError:  # a reader is connected: then they wait for each other
            self.index.execute("PRAGMA locking_mode=NORMAL")
        self.index.execute("PRAGMA synchronous=FULL")

    def take_up(self, run: str, lease: Lease) -> bool:
        """Continue the run of this name, whose rows exist already; False where they are another run's."""
        if self.index.execute("PRAGMA user_version").fetchone()[0] // 1000 != MAJOR:
            return False
        found = [decode(text) for (text,) in self.index.execute("SELECT record FROM run ORDER BY id").fetchall()]
        counts = next((one for one in found if isinstance(one, RowCounts)), None)
        if counts is None or not isinstance(found[0], RunStart) or found[0].run != run:
            return False
        self._run, self._first = run, dict(counts.first)
        for table in COUNTED:
            (highest,) = self.index.execute(f"SELECT max(id) FROM {table}").fetchone()
            self._next[table] = self._first[table] if highest is None else highest + 1
        self._counted = sum(self._next.values())
        for number, text in self.index.execute("SELECT id, record FROM channels ORDER BY id").fetchall():
            channel = decode(text)
            self._channels[channel.name] = (number, channel, page_owner(run, channel))
            self._described[text.encode()] = number
        self._frames = {decode(text).index for (text,) in self.index.execute("SELECT record FROM frames").fetchall()}
        self.index.execute("DELETE FROM lease")  # of a writer that was killed: the caller found none that is alive
        self._lease(lease)
        return True

    def _lease(self, lease: Lease) -> None:
        self.index.execute("INSERT INTO lease VALUES (NULL, ?, ?, ?)", lease)

    def drop_all(self) -> None:
        """Empty the index. Numbers of rows continue from where they were, so that a reader notices the new ones."""
        found = self.index.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite#_%' ESCAPE '#'")
        objects = found.fetchall()
        for table in COUNTED:
            with contextlib.suppress(sqlite3.OperationalError):  # no such table or column: not written by this package
                highest = self.index.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
                self._first[table] = self._next[table] = (highest if isinstance(highest, int) else 0) + 1
        for wanted in ("trigger", "view", "table"):
            for kind, name in objects:
                if kind == wanted:
                    quoted = str(name).replace('"', '""')
                    self.index.execute(f'DROP {wanted} IF EXISTS "{quoted}"')

    def count(self) -> None:
        """Write the row counts, unless they are already the last row."""
        if sum(self._next.values()) != self._counted:
            last = {table: number - 1 for table, number in self._next.items()}
            counts = RowCounts(first=self._first, last={**last, "run": self._next["run"]})
            (data,) = encoded(counts, MAX_JSON)
            self._record("run", data.decode())
            self._counted = sum(self._next.values())

    def numbers(self) -> Numbers:
        """How far the numbers of rows have come, for `go_back`."""
        return dict(self._next), self._counted

    def go_back(self, numbers: Numbers) -> None:
        """The rows since then were not committed. Only the counts are written after that: a writer ends at a fault."""
        self._next, self._counted = numbers
        for rows in self._new.values():
            rows.clear()

    def store(self) -> None:
        """Insert what was written since the last time. Raises sqlite3.Error."""
        for table, rows in self._new.items():
            if not rows:
                continue
            one = f"({', '.join('?' * len(rows[0]))})"
            whole = len(rows) // PIECE * PIECE
            for first in range(0, whole, PIECE):
                values = [value for row in rows[first : first + PIECE] for value in row]
                self.index.execute(f"INSERT INTO {table} VALUES {', '.join([one] * PIECE)}", values)
            self.index.executemany(f"INSERT INTO {table} VALUES {one}", rows[whole:])
            rows.clear()

    def write(self, record: Any) -> None:
        """The row or rows of one record. Raises ValueError for a page that does not fit its channel, and for a channel
        that contradicts its earlier description."""
        if isinstance(record, PlacedPage):
            self._page(record)
        elif isinstance(record, Channel):
            self._channel(record)
        elif isinstance(record, Frame):
            self._frame(record)
        else:
            for data in encoded(record, MAX_JSON):
                self._note(record, data.decode())
            if isinstance(record, RunStop):
                self.count()

    def _note(self, record: Any, text: str) -> None:
        if isinstance(record, RunStop):
            self._record("run", text)
        else:
            self._record("notes", text, type(record).__name__)

    def _frame(self, frame: Frame) -> None:
        for data in encoded(frame, MAX_JSON):
            self._record("frames", data.decode())
        self._frames.add(frame.index)

    def _channel(self, channel: Channel) -> None:
        """A row for each way in which a channel is described; the last one applies to the pages that follow."""
        before = self._channels.get(channel.name)
        problem = contradiction(before[1] if before else None, channel)
        if problem:
            raise ValueError(problem.rstrip("."))
        (data,) = encoded(channel, MAX_JSON)
        number = self._described.get(data)
        if number is None:
            name = channel.name.encode("utf-8", "backslashreplace").decode()
            number = self._described[data] = self._record("channels", data.decode(), name)
        self._channels[channel.name] = (number, channel, page_owner(self._run, channel))

    def _page(self, page: PlacedPage) -> None:
        if page.channel not in self._channels:
            raise ValueError(f"a page of {page.channel!r} was written before its channel was declared")
        number, channel, owner = self._channels[page.channel]
        if _plain_name(page.dtype) != channel.dtype or len(page.shape) != len(channel.dims):
            raise ValueError(
                f"a page of {channel.name} is {page.dtype}{page.shape}; declared: {channel.dtype} {channel.dims}"
            )
        if page.frame not in self._frames:
            self._frame(Frame(index=page.frame))  # no other record of it exists
        file, offset, nbytes, crc = page.place
        own, start, shape = self._next["pages"], _listed(page.offset), _listed(page.shape)
        columns = (own, number, page.frame, file, offset, nbytes, start, shape, crc)
        self._new["pages"].append((*columns, page_checksum(owner, columns)))
        self._next["pages"] = own + 1

    def _record(self, table: str, text: str, kind: str = "") -> int:
        """A row that holds a record, and the kind of a note or the name of a channel; its number."""
        number = self._next[table]
        checksum = record_checksum(self._run, table, number, text, kind)
        self._insert(table, number, *((kind,) if kind else ()), text, checksum)
        return number

    def _insert(self, table: str, *values: Any) -> None:
        """A row with the values of all its columns. Rows of a table are numbered one after the other."""
        self._new[table].append(values)
        self._next[table] += 1


@lru_cache(maxsize=256)
def _plain_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type, whichever its byte order; numpy takes as long to make it as a row takes to write."""
    return str(dtype.newbyteorder("="))


@lru_cache(maxsize=1 << 14)
def _listed(numbers: tuple[int, ...]) -> str:
    """As JSON. Pages of all channels begin at the same places and have the same shapes."""
    return json.dumps(numbers)


def counts(record: Any) -> bool:
    """Whether a record justifies a capture: numbers, or the end of a run that had none."""
    return isinstance(record, Page) or (isinstance(record, RunStop) and record.status == "done")
