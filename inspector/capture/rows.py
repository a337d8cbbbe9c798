"""The rows of an index that is being written: the rows of each record, and their numbers."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from functools import lru_cache
from typing import Any

import numpy as np

from inspector.capture.appending import Position
from inspector.capture.checksums import page_checksum, record_checksum
from inspector.capture.layout import COUNTED, MAJOR, MAX_JSON, schema
from inspector.capture.placing import contradiction
from inspector.records import Channel, Frame, Page, RowCounts, RunStart, RunStop, decode, encoded

Lease = tuple[int, str, str]
Numbers = tuple[dict[str, int], int]


class Rows:
    """Writes rows within the transaction that its connection is in."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self.index = index
        self._channels: dict[str, tuple[int, Channel]] = {}
        self._described: dict[bytes, int] = {}
        self._frames: set[int] = set()
        self._first = dict.fromkeys(COUNTED, 1)
        self._next = dict(self._first)
        self._counted = -1
        self._run = ""

    def describe(self, start: RunStart, lease: Lease) -> None:
        """Write the tables, the run's start record, and the lease."""
        for statement in schema().split(";\n"):
            self.index.execute(statement)
        for data in encoded(start, MAX_JSON):
            self._record("run", data.decode())
        self._run = start.run
        self._insert("lease", None, *lease)
        self.count()

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
            self._channels[channel.name] = (number, channel)
            self._described[text.encode()] = number
        self._frames = {decode(text).index for (text,) in self.index.execute("SELECT record FROM frames").fetchall()}
        self.index.execute("DELETE FROM lease")  # of a writer that was killed: the caller found none that is alive
        self._insert("lease", None, *lease)
        return True

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

    def write(self, record: Any, place: Position | None) -> None:
        """The row or rows of one record; `place` is where a page's bytes lie. Raises ValueError for a page that does
        not fit its channel, and for a channel that contradicts its earlier description."""
        if isinstance(record, Page):
            assert place is not None
            self._page(record, place)
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
        self._channels[channel.name] = (number, channel)

    def _page(self, page: Page, place: Position) -> None:
        if page.channel not in self._channels:
            raise ValueError(f"a page of {page.channel!r} was written before its channel was declared")
        number, channel = self._channels[page.channel]
        array = page.array
        if _plain_name(array.dtype) != channel.dtype or array.ndim != len(channel.dims):
            raise ValueError(
                f"a page of {channel.name} is {array.dtype}{array.shape}; declared: {channel.dtype} {channel.dims}"
            )
        if page.frame not in self._frames:
            self._frame(Frame(index=page.frame))  # no other record of it exists
        file, offset, nbytes, crc = place
        columns = (number, page.frame, file, offset, nbytes, _listed(page.offset), _listed(array.shape), crc)
        own = self._next["pages"]
        self._insert("pages", own, *columns, page_checksum(self._run, channel, own, *columns))

    def _record(self, table: str, text: str, kind: str = "") -> int:
        """A row that holds a record, and the kind of a note or the name of a channel; its number."""
        number = self._next[table]
        checksum = record_checksum(self._run, table, number, text, kind)
        self._insert(table, number, *((kind,) if kind else ()), text, checksum)
        return number

    def _insert(self, table: str, *values: Any) -> None:
        """A row with the values of all its columns. Rows of a table are numbered one after the other."""
        self.index.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        if table in self._next:
            self._next[table] += 1


@lru_cache(maxsize=256)
def _plain_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type, whichever its byte order; numpy takes as long to make it as a row takes to write."""
    return str(dtype.newbyteorder("="))


@lru_cache(maxsize=1 << 14)
def _listed(numbers: tuple[int, ...]) -> str:
    """As JSON. Pages of all channels begin at the same places and have the same shapes."""
    return json.dumps(numbers)
