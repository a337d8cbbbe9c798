"""The rows of an index that is being written: what a record becomes, and the numbers that rows get."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import Any

from inspector.capture.appending import Position
from inspector.capture.layout import MAX_JSON, TABLES, schema
from inspector.records import Channel, Frame, Page, RunStart, RunStop, decode, encoded

Lease = tuple[int, str, str]


class Rows:
    """Writes rows within the transaction that its connection is in."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self.index = index
        self._channels: dict[str, tuple[int, Channel]] = {}
        self._next: dict[str, int] = {}

    def describe(self, start: RunStart, lease: Lease) -> None:
        """The tables, how the run begins, and who writes."""
        for statement in schema().split(";\n"):
            self.index.execute(statement)
        for data in encoded(start, MAX_JSON):
            self._insert("run", record=data.decode())
        self._insert("lease", **dict(zip(("pid", "started", "token"), lease, strict=True)))

    def take_up(self, run: str, lease: Lease) -> bool:
        """Go on with the run of this name, whose channels are declared already; False where it is another's."""
        (first,) = self.index.execute("SELECT record FROM run ORDER BY id LIMIT 1").fetchone() or ("",)
        start = decode(first) if first else None
        if not isinstance(start, RunStart) or start.run != run:
            return False
        for number, text in self.index.execute("SELECT id, record FROM channels").fetchall():
            channel = decode(text)
            self._channels[channel.name] = (number, channel)
        self._insert("lease", **dict(zip(("pid", "started", "token"), lease, strict=True)))
        return True

    def drop_all(self) -> None:
        """Empty the index. Numbers of rows will go on from where they were, so that a reader notices the new ones."""
        found = self.index.execute("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite#_%' ESCAPE '#'")
        objects = found.fetchall()
        for table in TABLES:
            with contextlib.suppress(sqlite3.OperationalError):  # no such table or column: no capture of ours wrote it
                highest = self.index.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
                self._next[table] = (highest if isinstance(highest, int) else 0) + 1
        for wanted in ("trigger", "view", "table"):
            for kind, name in objects:
                if kind == wanted:
                    quoted = str(name).replace('"', '""')
                    self.index.execute(f'DROP {wanted} IF EXISTS "{quoted}"')

    def write(self, record: Any, place: Position | None) -> None:
        """The row or rows of one record; `place` is where a page's bytes lie. Raises ValueError for a page that does
        not fit its channel."""
        if isinstance(record, Page):
            assert place is not None
            self._page(record, place)
        elif isinstance(record, Channel):
            self._channel(record)
        else:
            for data in encoded(record, MAX_JSON):
                text = data.decode()
                if isinstance(record, (Frame, RunStop)):
                    self._insert("frames" if isinstance(record, Frame) else "run", record=text)
                else:
                    self._insert("notes", kind=type(record).__name__, record=text)

    def _channel(self, channel: Channel) -> None:
        if channel.name not in self._channels:
            (data,) = encoded(channel, MAX_JSON)
            name = channel.name.encode("utf-8", "backslashreplace").decode()
            self._channels[channel.name] = (self._insert("channels", name=name, record=data.decode()), channel)

    def _page(self, page: Page, place: Position) -> None:
        if page.channel not in self._channels:
            raise ValueError(f"a page of {page.channel!r} was written before its channel was declared")
        number, channel = self._channels[page.channel]
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
        if table in self._next:
            values["id"] = self._next.pop(table)
        marks = ", ".join("?" * len(values))
        cursor = self.index.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid
