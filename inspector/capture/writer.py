"""Writing a capture: records go into a bounded queue, a thread of its own appends pages and commits the index.

Order on disk: page bytes first, then one transaction of index rows. A crash loses at most what was in flight.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inspector.capture.layout import ALIGN, INDEX, ROLL_BYTES, CaptureError, aligned, page_file, schema
from inspector.capture.owner import is_alive, own_lease
from inspector.capture.private import private_file, private_folder
from inspector.records import Channel, Frame, Log, Page, RunStart, RunStop, encode

COMMIT_SECONDS = 0.1
COMMIT_BYTES = 4 << 20
QUEUE_BYTES = 256 << 20


class Writer:
    """The one writer of a capture folder. Also a context manager.

    `block=True` waits when the disk is slower than the run; `block=False` (inside somebody's training loop) drops
    pages instead, counts them in `dropped` and notes the count in the log: never descriptions or findings.
    Raises CaptureError from the constructor, and from `write`, `flush` and `close` once writing has failed; what
    was committed before stays readable.
    """

    def __init__(self, path: Path | str, start: RunStart, *, overwrite: bool = False, block: bool = True) -> None:
        self.path = Path(path)
        self.block = block
        self.dropped = 0
        self.error: CaptureError | None = None
        self._pending = 0
        self._room = threading.Condition()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = False
        _prepare(self.path, overwrite)
        self._store = _Store(self.path, start)
        self._thread = threading.Thread(target=self._work, name="capture-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, record: Any) -> None:
        """Queue one record. Raises CaptureError when writing has failed."""
        if self.error is not None:
            raise self.error
        if self._closed:
            raise CaptureError(f"The capture {self.path.name} is closed; nothing more can be written to it.")
        size = record.array.nbytes if isinstance(record, Page) else 0
        if size and not self._reserve(size):
            self.dropped += 1
            return
        self._queue.put(record)

    def _reserve(self, size: int) -> bool:
        with self._room:
            if not self.block and self._pending + size > QUEUE_BYTES and self._pending:
                return False
            self._room.wait_for(lambda: not self._pending or self._pending + size <= QUEUE_BYTES or self.error)
            self._pending += size
        return True

    def flush(self) -> None:
        """Return when everything written so far is committed and visible to readers."""
        done = threading.Event()
        self._queue.put(done)
        while not done.wait(0.2):
            if not self._thread.is_alive():
                break
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Commit what is left and close the files. Idempotent; raises CaptureError if something was lost."""
        if self._closed:
            return
        self._closed = True
        if self.dropped:
            self._queue.put(
                Log(f"{self.dropped} pages were dropped because the disk was slower than the run.", "warning")
            )
        self._queue.put(None)
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        waiting: list[threading.Event] = []
        open_ = True
        while open_:
            batch = self._gather()
            open_ = batch[-1] is not None if batch else True
            waiting = [item for item in batch if isinstance(item, threading.Event)]
            self._guarded(lambda batch=batch: self._store.commit([r for r in batch if not _is_mark(r)]))  # type: ignore[misc]
            with self._room:
                self._pending -= sum(item.array.nbytes for item in batch if isinstance(item, Page))
                self._room.notify_all()
            for event in waiting:
                event.set()
        self._guarded(self._store.close)

    def _guarded(self, action: Callable[[], None]) -> None:
        if self.error is not None and action != self._store.close:
            return
        try:
            action()
        except (OSError, sqlite3.Error, ValueError) as problem:
            with self._room:
                self.error = self.error or CaptureError(_explain(self.path, problem))
                self._room.notify_all()

    def _gather(self) -> list[Any]:
        """Records of one transaction: up to 4 MB or 0.1 s, at once when somebody waits in flush()."""
        batch: list[Any] = []
        size, end = 0, time.monotonic() + COMMIT_SECONDS
        while size < COMMIT_BYTES:
            try:
                item = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            batch.append(item)
            if _is_mark(item):
                break
            size += item.array.nbytes if isinstance(item, Page) else 0
        return batch


class _Store:
    """The files of a capture, used by the writer's thread alone."""

    def __init__(self, path: Path, start: RunStart) -> None:
        self.path = path
        try:
            private_file(path / INDEX).close()  # SQLite gives its other files the mode of this one
            self.index = sqlite3.connect(path / INDEX, isolation_level=None, check_same_thread=False, timeout=5.0)
            self.index.execute("PRAGMA journal_mode=WAL")
            self.index.execute("PRAGMA synchronous=NORMAL")
            self.index.executescript(schema())
            self.index.execute("INSERT INTO run (record) VALUES (?)", (encode(start).decode(),))
            self.index.execute("INSERT INTO lease (pid, started, token) VALUES (?, ?, ?)", own_lease())
        except (sqlite3.Error, OSError) as problem:
            raise CaptureError(_explain(path, problem)) from None
        self.channels: dict[str, tuple[int, Channel]] = {}
        self.number = 0
        self.file: BinaryIO = private_file(path / page_file(0))

    def commit(self, records: list[Any]) -> None:
        """Append the pages of `records`, then commit all their rows in one transaction."""
        if not records:
            return
        try:
            placed = [self._place(record) if isinstance(record, Page) else None for record in records]
            self.file.flush()
        except OSError:
            words = [record for record in records if not isinstance(record, Page)]
            self._commit_rows(words, [None] * len(words))  # a full disk may still have room for what was said
            raise
        self._commit_rows(records, placed)

    def _commit_rows(self, records: list[Any], placed: list[tuple[int, int, int, int] | None]) -> None:
        self.index.execute("BEGIN IMMEDIATE")
        try:
            for record, place in zip(records, placed, strict=True):
                self._row(record, place)
            self.index.execute("COMMIT")
        except BaseException:
            self.index.execute("ROLLBACK")
            raise

    def _place(self, page: Page) -> tuple[int, int, int, int]:
        array = page.array.astype(page.array.dtype.newbyteorder("<"), copy=False)
        flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        view = memoryview(flat)
        if self.file.tell() and self.file.tell() + len(view) > ROLL_BYTES:
            self.file.close()
            self.number += 1
            self.file = private_file(self.path / page_file(self.number))
        gap = aligned(self.file.tell()) - self.file.tell()
        if gap:
            self.file.write(bytes(gap))
        position = self.file.tell()
        self.file.write(view)
        assert position % ALIGN == 0
        return self.number, position, len(view), zlib.crc32(view)

    def _row(self, record: Any, place: tuple[int, int, int, int] | None) -> None:
        if isinstance(record, Page):
            assert place is not None
            self._page_row(record, place)
        elif isinstance(record, Channel):
            self._channel_row(record)
        elif isinstance(record, (Frame, RunStop)):
            table = "frames" if isinstance(record, Frame) else "run"
            self.index.execute(f"INSERT INTO {table} (record) VALUES (?)", (encode(record).decode(),))
        else:
            text = encode(record).decode("utf-8", "replace")
            self.index.execute("INSERT INTO notes (kind, record) VALUES (?, ?)", (type(record).__name__, text))

    def _channel_row(self, channel: Channel) -> None:
        if channel.name in self.channels:
            return
        cursor = self.index.execute(
            "INSERT INTO channels (name, record) VALUES (?, ?)", (channel.name, encode(channel).decode())
        )
        assert cursor.lastrowid is not None
        self.channels[channel.name] = (cursor.lastrowid, channel)

    def _page_row(self, page: Page, place: tuple[int, int, int, int]) -> None:
        if page.channel not in self.channels:
            raise ValueError(f"a page of {page.channel!r} was written before its channel was declared")
        number, channel = self.channels[page.channel]
        array = page.array
        if str(array.dtype.newbyteorder("=")) != channel.dtype or array.ndim != len(channel.dims):
            raise ValueError(
                f"a page of {channel.name} is {array.dtype}{array.shape}; declared: {channel.dtype} {channel.dims}"
            )
        file, offset, nbytes, crc = place
        self.index.execute(
            "INSERT INTO pages (channel, frame, file, offset, nbytes, start, shape, crc) VALUES (?,?,?,?,?,?,?,?)",
            (number, page.frame, file, offset, nbytes, json.dumps(page.offset), json.dumps(array.shape), crc),
        )

    def close(self) -> None:
        """End WAL mode so that the finished capture opens on read-only media; give up the lease."""
        try:
            self.file.close()
            self.index.execute("DELETE FROM lease")
            self.index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with contextlib.suppress(sqlite3.OperationalError):  # with a reader open it stays in WAL mode
                self.index.execute("PRAGMA journal_mode=DELETE")
        finally:
            self.index.close()


def _is_mark(item: Any) -> bool:
    return item is None or isinstance(item, threading.Event)


def _prepare(path: Path, overwrite: bool) -> None:
    """Make the folder, or empty an old capture. Raises CaptureError if it is in use or is something else."""
    try:
        private_folder(path)
        present = list(path.iterdir())
    except OSError as problem:
        raise CaptureError(f"Cannot make the capture folder {path}: {problem.strerror or problem}.") from None
    if not present:
        return
    if not (path / INDEX).exists():
        raise CaptureError(f"{path} is a folder with other files in it, not a capture; choose another name.")
    if not overwrite:
        raise CaptureError(f"{path} already holds a capture; choose another name or ask to overwrite it.")
    if _in_use(path / INDEX):
        raise CaptureError(f"{path} is being written by another run; choose another name or end that run first.")
    for entry in present:
        if entry.name.startswith((INDEX, "pages-")) and entry.is_file():
            entry.unlink()


def _in_use(index: Path) -> bool:
    try:
        connection = sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
        try:
            rows = connection.execute("SELECT pid, started FROM lease").fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return False
    return any(isinstance(pid, int) and isinstance(mark, str) and is_alive(pid, mark) for pid, mark in rows)


def _explain(path: Path, problem: BaseException) -> str:
    text = str(problem)
    if isinstance(problem, ValueError):
        return f"The capture {path.name} could not be written: {text}."
    if "full" in text or getattr(problem, "errno", None) in (28, 122):
        return f"The disk is full: {path.name} keeps what was captured so far; free some space and run again."
    reason = getattr(problem, "strerror", None) or text
    return f"Writing the capture {path} failed ({reason}); what was committed before is still readable there."
