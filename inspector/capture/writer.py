"""Writing a capture: records go into a bounded queue, threads of their own append pages and commit the index.

Order on disk: page bytes first, then one transaction of index rows. A crash loses at most what was in flight. The bytes
of the next transaction are appended while those of one are synchronised (`groups.py`).
"""

from __future__ import annotations

import errno
import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.capture.exchanging import can_exchange, free_name_beside, remove_unused, take_place
from inspector.capture.groups import Group, Groups
from inspector.capture.layout import CaptureError
from inspector.capture.rows import PlacedPage, counts
from inspector.capture.store import Store
from inspector.capture.target import check_target
from inspector.records import Log, Page, RunStart, RunStop, counted

LEFT = "{} beside it is what a run that was killed has left: nobody else removes it."
COMMIT_SECONDS = 0.1
FIRST_SECONDS = 0.02
"""Seconds until the first pages are committed: somebody waits for the first picture. Each time twice as long."""
COMMIT_BYTES = 4 << 20
ROOM_SECONDS, LOOK_SECONDS, ROOM_BYTES = 60.0, 0.1, 256 << 10
"""How long a run that waits for the disk waits for room on it, and what the rows of its index need beside its pages."""
SAID_SECONDS = 5.0
"""So often it says so while it waits: what else the run tells goes on meanwhile, and one that says nothing for long is
taken for one that hangs."""
PLENTY_BYTES, PLENTY_SECONDS = 2 << 30, 0.05
"""With so much room it is not asked for again so soon: the question gives up Python's lock, and a run that computes in
Python gives it back after 5 ms. No disk takes 2 GiB in that time."""
QUEUE_BYTES = 256 << 20
"""Of pages that wait to be written, where the run never waits for the disk."""
SHORT_QUEUE_BYTES = 12 << 20
"""The same where it does: more would take memory and save no time, since the disk must write them all."""
SQLITE_SAYS = {
    sqlite3.SQLITE_IOERR: "the disk reported an error for the index",
    sqlite3.SQLITE_CANTOPEN: "a file of the index cannot be opened or made: no space, permission, folder or descriptor",
    sqlite3.SQLITE_READONLY: "the index cannot be written to: no space, no permission, or a read-only disk",
    sqlite3.SQLITE_CORRUPT: "the index was damaged while it was written",
    sqlite3.SQLITE_NOTADB: "the index was overwritten by another program",
    sqlite3.SQLITE_ERROR: "the index could not be changed",
}
"""Code of SQLite's → what it means here; its own texts name what it was doing, not what is wrong."""

UNTOLD = CaptureError("Writing the capture failed, and no memory was left to say why; what was committed is readable.")


class Writer:
    """The one writer of a capture folder. Also a context manager.

    With `overwrite` a capture may exist at `path` already. It stays unchanged until this run has its first page, or is
    done without any; if neither happens, nothing was changed (`begun` is False). With `whole` too it stays until this
    run has ended, which is written to `beside` until then, and takes its place when it is closed. `block=True` waits
    when the disk is slower than the run; `block=False` (inside a user's training loop) drops pages instead, counts them
    in `dropped` and notes the count in the log: never descriptions or findings. `again=True` adds to the capture of the
    run `start`, which has ended: channels of existing frames. `say` takes, from the writer's thread, one sentence where
    the run pauses for room on a full disk, and one when there is some. Raises CaptureError from the constructor, and
    from `write`, `flush` and `close` once writing has failed; what was committed before stays readable.
    """

    def __init__(
        self, path: Path | str, start: RunStart, *, overwrite: bool = False, block: bool = True, again: bool = False,
        whole: bool = False, say: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self._say = say or (lambda _: None)
        self.patient = block
        """Whether it waits for room on a full disk, ROOM_SECONDS at most: not once a run was ended by its user."""
        self.block = block
        self.dropped = 0
        self.error: CaptureError | None = None
        self.unwritten: list[Any] = []
        """Once writing has failed: what is not there, without pages."""
        self.lost_pages = 0
        """The pages that are not there."""
        self._pending = 0
        self._room = threading.Condition()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = False
        self._patience = FIRST_SECONDS
        self._has_plenty_until = 0.0
        self.beside: Path | None = None
        """Where this run is written until it takes the place of another; else None."""
        self._counts = False
        self._says_how, self._since = block and not again, time.monotonic()
        """Whether a run that a full disk ends is noted as failed: not one that goes on when there is room, nor one that
        had ended; and when it began."""
        self._groups: Groups | None = None
        replaces, left = False if again else check_target(self.path, overwrite), list[Path]()
        target = self.path.absolute()
        if replaces and whole and can_exchange(target.parent):
            replaces, (self.beside, left) = False, free_name_beside(target)
        try:
            self._store = Store(self.beside or self.path, start, replaces=replaces, again=again)
        except (OSError, sqlite3.Error, ValueError) as problem:
            raise CaptureError(_explain(self.path, problem, ""), full=_is_full(problem)) from None
        self._thread = threading.Thread(target=self._work, name="capture-writer", daemon=True)
        self._thread.start()
        for one in left:
            self.write(Log(LEFT.format(one.name), "warning"))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def begun(self) -> bool:
        """Whether the folder has this run's capture, or gets it; with `overwrite` it has the one before at first."""
        return self._store.begun if self.beside is None else self._counts

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
        if not self._counts:
            self._counts = counts(record)
        self._queue.put(record)

    def _reserve(self, size: int) -> bool:
        most = SHORT_QUEUE_BYTES if self.block else QUEUE_BYTES
        with self._room:
            if not self.block and self._pending + size > most and self._pending:
                return False
            while self._pending and self._pending + size > most and not self.error:
                self._room.wait()
            self._pending += size
        return True

    def flush(self) -> None:
        """Return when everything written so far is committed and visible to readers (see `begun`)."""
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
                Log(
                    f"The disk was slower than the run, so {counted(self.dropped, 'page')} could not be kept.",
                    "warning",
                )
            )
        self._queue.put(None)
        self._thread.join()
        if self.error is not None:
            raise self.error
        if self.beside is not None and self._counts:
            take_place(self.beside, self.path.absolute())
        elif self.beside is not None:
            remove_unused(self.beside)

    def _work(self) -> None:
        try:
            while True:
                batch = self._gather()
                if batch:
                    self._hand_on(batch)
                if batch and batch[-1] is None:
                    break
        except Exception as problem:  # noqa: BLE001 - a model that replaced a function of Python's, say
            self._failed(problem)
        try:
            if self._groups is not None:
                self._groups.close()  # what is on its way may still write
        except Exception as problem:  # noqa: BLE001
            self._failed(problem)
        self._guarded(self._store.close)

    def _hand_on(self, batch: list[Any]) -> None:
        """Append the pages of a batch; its rows follow. A capture that is replaced begins here, as a whole."""
        records = [item for item in batch if not _is_mark(item)]
        marks = [item for item in batch if isinstance(item, threading.Event)]
        self._wait_for_room(sum(item.array.nbytes for item in records if isinstance(item, Page)))
        if self._store.begun and self.error is None:
            group = self._store.append(records)
            group.marks = marks
            self._taken(records)
            self._groups = self._groups or Groups(self._finish)
            self._groups.put(group)
            return
        if self.error is None:
            self._guarded(lambda: self._store.commit(records))
        if self.error is not None:
            self._lose(records)
        self._taken(records)
        for mark in marks:
            mark.set()

    def _wait_for_room(self, size: int) -> None:
        """Where the disk has none for so many bytes the run pauses, so that nothing of it is lost: somebody may make
        some. Where nobody does it ends as at any other failed write."""
        looks, paused = round(ROOM_SECONDS / LOOK_SECONDS), False  # a process that is stopped waits no less
        while size and self.patient and self.error is None and not self._has_room(size):
            if not looks:
                self.patient = False
                return
            if not paused or looks % round(SAID_SECONDS / LOOK_SECONDS) == 0:
                left = f"{looks * LOOK_SECONDS:.0f} s"
                self._say(f"The disk is full ({self.path}): the run pauses for up to {left}; free some space.")
            paused, looks = True, looks - 1
            time.sleep(LOOK_SECONDS)
        if paused and self.patient and self.error is None:
            self._say("There is room on the disk again; the run goes on.")

    def _has_room(self, size: int) -> bool:
        now = time.monotonic()
        if now < self._has_plenty_until:
            return True
        try:
            free = shutil.disk_usage(self._store.path).free
        except OSError:  # it was removed: writing says so
            return True
        if free >= size + PLENTY_BYTES:
            self._has_plenty_until = now + PLENTY_SECONDS
        return free >= size + ROOM_BYTES

    def _taken(self, records: list[Any]) -> None:
        """Their bytes are the system's now: there is room for more."""
        with self._room:
            self._pending -= sum(item.array.nbytes for item in records if isinstance(item, Page))
            self._room.notify_all()

    def _finish(self, group: Group) -> None:
        self._guarded(lambda: self._store.finish(group))
        if self.error is not None:
            self._lose(group.records)

    def _lose(self, records: list[Any]) -> None:
        """Note what is not there."""
        pages = sum(isinstance(record, (Page, PlacedPage)) for record in records)
        with self._room:
            self.lost_pages += pages
            self.unwritten += (record for record in records if not isinstance(record, (Page, PlacedPage)))

    def _guarded(self, action: Callable[[], None]) -> None:
        if self.error is not None and action != self._store.close:
            return
        try:
            action()
        except Exception as problem:  # noqa: BLE001 - without this thread the run would wait for space forever
            self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        """Nothing more is written; `write` and `flush` say why."""
        kept = "what was committed before is still readable there"
        if self.beside is not None:
            kept = f"the capture that was there is unchanged, and what was committed is in {self.beside.name}"
        elif not self.begun:
            kept = "the capture that was there is unchanged"
        told = problem if isinstance(problem, CaptureError) else None
        try:
            told = told or CaptureError(_explain(self.path, problem, kept), full=_is_full(problem))
        except Exception:  # noqa: BLE001 - whoever waits must be told that it is over, with no memory for words too
            told = UNTOLD
        if told.full and self._says_how:
            self._store.stop = self._store.stop or RunStop("failed", str(told), time.monotonic() - self._since)
        with self._room:
            self.error = self.error or told
            self._room.notify_all()

    def _gather(self) -> list[Any]:
        """Records of one transaction: up to 4 MB or 0.1 s, less at first, at once when a caller waits in flush()."""
        batch: list[Any] = []
        size, end = 0, time.monotonic() + self._patience
        while size < COMMIT_BYTES:
            try:
                item = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            batch.append(item)
            if _is_mark(item):
                break
            size += item.array.nbytes if isinstance(item, Page) else 0
        if size:
            self._patience = min(2 * self._patience, COMMIT_SECONDS)
        return batch


def _is_mark(item: Any) -> bool:
    return item is None or isinstance(item, threading.Event)


def _is_full(problem: BaseException) -> bool:
    """Whether space is missing: on the disk, of a quota, or below a limit of a file's size."""
    if getattr(problem, "sqlite_errorcode", 0) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):
        return True
    return getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _explain(path: Path, problem: BaseException, kept: str) -> str:
    """A one-line message about what went wrong, and what is `kept` in spite of it."""
    text = " ".join(str(problem).split())
    if isinstance(problem, (ValueError, TypeError)):
        return f"The capture {path.name} could not be written: {text}."
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full ({path}{': ' + kept if kept else ''}); free some space and run again."
    reason = getattr(problem, "strerror", None) or SQLITE_SAYS.get(code) or text or type(problem).__name__
    return f"Writing the capture {path} failed ({reason}){'; ' + kept if kept else ''}."
