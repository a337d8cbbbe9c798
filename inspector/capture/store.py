"""The files of a capture that is being written: page bytes first, then one transaction of index rows.

A capture that is replaced stays as it is until the new run has its first pages. These go to page files of other
numbers, and then one transaction empties the old index, describes the new run and commits its first rows: in any case,
even after a kill, the folder has the old capture or the new one. The index file stays the same file, so that readers
see the change as any other commit.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspector.capture.appending import Mark, PageAppender, folder_to_disk, keep_standard_files_open, to_disk
from inspector.capture.connection import Connection, check_beside, is_locked
from inspector.capture.groups import Group
from inspector.capture.identity import Identity, identity
from inspector.capture.in_turn import in_turn, turn_of
from inspector.capture.layout import INDEX, PAGE_BYTES, CaptureError
from inspector.capture.owner import give_up, own_lease
from inspector.capture.private import private_index
from inspector.capture.reserve import Reserve
from inspector.capture.rows import PlacedPage, Rows, counts
from inspector.capture.splitting import split
from inspector.capture.still_there import StillThere
from inspector.capture.target import busy, in_use, index_files, is_damage, is_leased, is_ours, page_files
from inspector.records import Page, RunStart, RunStop

LOCK_SECONDS = 5.0
"""Seconds that the writer waits for a reader of the index."""
_LOST: list[sqlite3.Connection] = []
"""Connections to captures that were moved or removed while they were written. They are never closed: SQLite would
remove the write-ahead log by its name, which may now be another capture's."""


class Store:
    """The files of a capture. One thread at a time uses it, but that `append` may run beside `finish`.

    `replaces`: an existing capture will be replaced. `again`: the capture is this run's own, and is added to.
    """

    def __init__(self, path: Path, start: RunStart, *, replaces: bool, again: bool = False) -> None:
        self.path = path.absolute()  # the model may change the working directory
        self.start = start
        self.begun = False
        self.pages = PageAppender(self.path)
        self._lease = own_lease()
        self._early: list[Any] = []
        self._identity: Identity | None = None
        self._files = StillThere(self.path)
        self._rows: Rows | None = None
        self._appending = threading.Lock()
        self._reserve: Reserve | None = None
        self.stop: RunStop | None = None
        """How the run ended where writing failed, for `close`; None where it says so itself."""
        self._ended = False
        """Whether a write has failed, so that nothing is appended any more."""
        if again:
            with turn_of(self.path, LOCK_SECONDS):
                self._go_on()
        elif not replaces:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with turn_of(self.path, LOCK_SECONDS):
                self._begin_anew()

    # -- beginning

    def _begin_anew(self) -> None:
        """A capture with only the run's start record, in a folder without one."""
        self._check_unused()
        rows = self._connect("rwc")
        rows.index.execute("PRAGMA synchronous=OFF")  # it has nothing yet that a power failure could destroy
        try:
            rows.index.execute("BEGIN EXCLUSIVE")
            if rows.index.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise busy(self.path)
            rows.describe(self.start, self._lease)
            rows.store()
            rows.index.execute("COMMIT")
            self._birth_to_disk()
        except BaseException as problem:
            rows.index.close()
            self._rows = None
            if is_locked(problem):
                raise busy(self.path) from None
            self._leave()
            raise
        self._settle()

    def _birth_to_disk(self) -> None:
        """The index as it begins, its name and that of the folder: later commits count on them."""
        with (self.path / INDEX).open("r+b") as file:
            to_disk(file.fileno())
        folder_to_disk(self.path)
        folder_to_disk(self.path.parent)

    def _check_unused(self) -> None:
        """A writer keeps its index locked, so waiting for it would be useless. Raises CaptureError."""
        if (self.path / INDEX).exists() and in_use(self.path / INDEX):
            raise busy(self.path)

    def _go_on(self) -> None:
        """Continue the capture of a run that has ended. Raises CaptureError where it is another run's, or missing."""
        if not is_ours(self.path / INDEX):
            raise CaptureError(f"{self.path} does not hold the capture of this run any more; run again.")
        check_beside(self.path / INDEX)
        self._check_unused()
        rows = self._connect("rw")
        try:
            rows.index.execute("BEGIN IMMEDIATE")
            if is_leased(rows.index):
                raise busy(self.path)
            if not rows.take_up(self.start.run, self._lease):
                raise CaptureError(f"{self.path} holds the capture of another run by now; run again.")
            rows.index.execute("COMMIT")
        except BaseException as problem:
            rows.index.close()  # which rolls back
            self._rows = None
            if is_locked(problem):
                raise busy(self.path) from None
            raise
        self._settle()

    def _connect(self, mode: str) -> Rows:
        keep_standard_files_open()
        if mode == "rwc":
            private_index(self.path / INDEX)
        uri = f"{(self.path / INDEX).as_uri()}?mode={mode}"
        index = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=LOCK_SECONDS)
        self._rows = Rows(index)
        return self._rows

    def _settle(self) -> None:
        """From now on readers and the writer do not wait for each other: readers use a copy of the log (`snapshot.py`).

        WAL mode comes after the first transaction: so the application id is in the file itself and not in its log, and
        the capture of a run that was killed is recognised. With exclusive locking SQLite keeps in memory what it would
        otherwise map from a file that another program may truncate, which ends a process.
        """
        rows = self._open()
        try:
            rows.log_changes()
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._remove_lease(rows)  # else nobody could write there before this process ends
            rows.index.close()
            self._rows = None
            raise
        self._identity = identity(self.path / INDEX)
        self._files.forget()
        self._reserve = Reserve(self.path)
        self.begun = True

    def _leave(self) -> None:
        """After a failed start: an empty index would only be in the way."""
        with contextlib.suppress(OSError):
            if (self.path / INDEX).stat().st_size == 0:
                (self.path / INDEX).unlink()
                self.path.rmdir()

    def _open(self) -> Rows:
        assert self._rows is not None
        return self._rows

    # -- one transaction

    def commit(self, records: list[Any]) -> None:
        """Append the pages of `records`, then commit all their rows in one transaction. A capture that is replaced
        begins with the first that counts; once a capture has `begun`, the three steps may be taken apart."""
        if not self.begun:
            self._early += records
            if not any(map(counts, records)):
                return
            records, self._early = self._early, []
            with turn_of(self.path, LOCK_SECONDS):
                self._replace(records)
        elif records:
            group = self.append(records)
            group.synchronise()
            self.finish(group)

    def append(self, records: list[Any]) -> Group:
        """First: pass the bytes of all pages to the system."""
        with self._appending:
            if self._ended:
                return Group([], self.pages.mark())
            try:
                placed = self._places(records)
                return Group(placed, self.pages.mark(), self.pages.unsynchronised())
            except Exception as problem:  # noqa: BLE001 - told by the last step, after the groups before
                return Group(records, self.pages.mark(), problem=problem)

    def _places(self, records: list[Any]) -> list[Any]:
        """The records, the bytes of all pages written out."""
        placed: list[Any] = []
        for record in records:
            if not isinstance(record, Page):
                placed.append(record)
                continue
            for part in (record,) if record.array.nbytes <= PAGE_BYTES else split(record):
                placed.append(PlacedPage.of(part, self.pages.place(part)))
        self.pages.write_out()
        return placed

    def finish(self, group: Group) -> None:
        """Last: commit the rows of a group whose pages are on the disk. Raises what went wrong in any of its steps."""
        if isinstance(group.problem, OSError):
            with self._appending:
                self._ended = True
                self.pages.cut()
            lost = (Page, PlacedPage, RunStop)  # a run that says it is done would have all its pages
            words = [record for record in group.records if not isinstance(record, lost)]
            self._commit_rows(words)  # a full disk may still have space for the other records
            group.records = [record for record in group.records if isinstance(record, lost)]
        if group.problem is not None:
            raise group.problem
        if group.records:
            self._commit_rows(group.records, group.mark)

    def _commit_rows(self, records: list[Any], mark: Mark | None = None) -> None:
        rows = self._open()
        self._check_folder()
        refused: Exception | None = None
        with self._transaction(rows):
            for record in records:
                try:
                    rows.write(record)
                except (ValueError, TypeError, RecursionError, OverflowError) as problem:
                    refused = problem  # the records before it are not lost with it
                    break
            if mark is not None:
                self.pages.committed(mark)  # before the commit: one that fails may be in the log, and its pages stay
        self._files.committed()
        if refused is not None:
            raise refused

    @contextlib.contextmanager
    def _transaction(self, rows: Rows) -> Iterator[None]:
        """All that is written inside is committed, or nothing. Raises CaptureError where another run replaced it."""
        rows.index.execute("BEGIN IMMEDIATE")
        before = rows.numbers()
        try:
            if rows.index.execute("SELECT token FROM lease").fetchall() != [(self._lease[2],)]:
                raise busy(self.path)
            yield
            rows.store()
            rows.index.execute("COMMIT")
        except BaseException:
            rows.go_back(before)
            with contextlib.suppress(sqlite3.OperationalError):  # SQLite has done so by itself where the disk is full
                rows.index.execute("ROLLBACK")
            raise

    def _check_folder(self) -> None:
        """SQLite would continue to write to a file that was removed or moved, where the numbers would be lost."""
        now = identity(self.path / INDEX)
        if now != self._identity and not self._is_mine():
            raise CaptureError(
                f"{self.path} was removed, moved or replaced while the run was writing to it; the capture ends there."
            )
        self._identity = now
        try:
            self._files.check(self.pages)
        except CaptureError:
            with contextlib.suppress(sqlite3.Error):  # what is in a log without a name alone gets into the index
                self._open().index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise

    def _is_mine(self) -> bool:
        """Whether the index at the path now is the one being written: some file systems reuse file numbers."""
        try:
            with Connection(self.path / INDEX, wait=1.0) as other:
                return bool(other.execute("SELECT token FROM lease").fetchall() == [(self._lease[2],)])
        except (CaptureError, sqlite3.Error):
            return False

    # -- replacing another capture

    def _replace(self, records: list[Any]) -> None:
        """In one transaction the old capture is removed and the new one written with its first rows.

        Pages are placed while the index is locked, and only page files that existed then are removed: two runs that
        replace one capture are serialised, and neither removes what the other has written.
        """
        try:
            self._check_unused()
            rows = self._emptied()
            old = list(page_files(self.path).values())
            placed = self._places(records)
            self.pages.flush()
            rows.describe(self.start, self._lease)
            for record in placed:
                rows.write(record)
            rows.store()
            rows.index.execute("COMMIT")
        except BaseException as problem:
            self._abandon()
            if is_locked(problem):
                raise busy(self.path) from None
            raise
        self.pages.committed(self.pages.mark())
        folder_to_disk(self.path)  # before old page files go: without SQLite's journal the old index cannot come back
        self._settle()
        with contextlib.suppress(sqlite3.OperationalError):  # a reader is connected: the free pages stay
            rows.index.execute("VACUUM")
        for path in old:
            with contextlib.suppress(OSError):  # open in another program, on Windows
                path.unlink()

    def _emptied(self) -> Rows:
        """The old index, emptied within a transaction. Raises CaptureError if a run writes it."""
        rows = self._connect("rw")
        try:
            rows.index.execute("BEGIN IMMEDIATE")
            if is_leased(rows.index):
                raise busy(self.path)
            rows.drop_all()
        except sqlite3.DatabaseError as problem:
            if not is_damage(problem):
                raise
            rows = self._cleared()
        return rows

    def _cleared(self) -> Rows:
        """An index that SQLite cannot change is useless: it is removed, as requested, and a new one is made."""
        self._open().index.close()
        for path in index_files(self.path):
            path.unlink()
        rows = self._connect("rwc")
        rows.index.execute("BEGIN EXCLUSIVE")
        return rows

    def _abandon(self) -> None:
        """The old capture stays; what was written for the new one is removed."""
        if self._rows is not None:
            with contextlib.suppress(sqlite3.Error):
                self._rows.index.execute("ROLLBACK")
            self._rows.index.close()
            self._rows = None
        self.pages.cut()

    # -- the end

    def close(self) -> None:
        """End WAL mode so that the finished capture opens on read-only media; give up the lease."""
        with in_turn(self.path, LOCK_SECONDS):
            try:
                self.pages.cut()
                if self.begun:
                    self._give_up_lease()
            finally:
                self._give_reserve()
                if self._rows is not None and self._rows.index not in _LOST:
                    self._rows.index.close()

    def _give_up_lease(self) -> None:
        rows = self._open()
        try:
            self._write_end(rows)
        except sqlite3.Error:  # a full disk
            self._give_reserve()
            with contextlib.suppress(sqlite3.Error):
                rows.index.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log's space may be enough too
            try:
                self._write_end(rows)
            except sqlite3.Error:
                self._remove_lease(rows)
        if identity(self.path / INDEX) != self._identity:
            _LOST.append(rows.index)
            return
        rows.index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.suppress(sqlite3.OperationalError):  # with a reader open it stays in WAL mode
            rows.index.execute("PRAGMA journal_mode=DELETE")

    def _write_end(self, rows: Rows) -> None:
        """How the run ended, where it could not say so itself, and the row counts; no more lease."""
        with self._transaction(rows):
            if self.stop is not None:
                rows.write(self.stop)
            rows.count()
            rows.index.execute("DELETE FROM lease")

    def _remove_lease(self, rows: Rows) -> None:
        """At least the lease no longer claims a writer. Raises sqlite3.Error."""
        try:
            rows.index.execute("DELETE FROM lease WHERE token = ?", (self._lease[2],))
        except sqlite3.Error:
            give_up(self._lease[2])
            raise

    def _give_reserve(self) -> None:
        if self._reserve is not None:
            self._reserve.give()
