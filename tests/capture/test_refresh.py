"""A reader that follows a run sees one moment at a time, and loses nothing that is committed meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from captures import START, as_format_1, channel, numbers, write

from inspector.capture import Capture, Writer, open_capture
from inspector.capture.index import Index
from inspector.capture.layout import INDEX
from inspector.capture.snapshot import PrivateCopy
from inspector.records import Frame, Labels, Page, Refusal, RunStop, Scalar

MOST = 26
"""More statements and copied files than any refresh has."""


def commit(writer: Writer, number: int) -> None:
    """One commit with everything that a run may bring: a channel, its pages, names, notes, a frame."""
    name = f"layer{number}:h"
    writer.write(channel(name))
    writer.write(Frame(index=number))
    for start in (0, 3):
        writer.write(Page(name, number, (start, 0), np.full((3, 4), number + start, np.float32)))
    writer.write(Labels("step", (f"a{number}", f"b{number}"), -1, 2 * number))
    writer.write(Scalar("loss", number, float(number)))
    writer.write(Refusal(f"layer{number}:c", "no reason"))
    writer.flush()


def said(capture: Capture) -> object:
    """All that a capture tells."""
    arrays = {
        (name, frame.index): capture.array(name, frame.index).tolist()
        for name in capture.channels for frame in capture.frames
    }  # fmt: skip
    notes = (capture.scalars, capture.refusals, capture.labels("step"), capture.frames, capture.stop)
    return list(capture.channels), arrays, notes, capture.damage


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, Writer]]:
    """A run in progress with one commit."""
    with Writer(tmp_path / "a.inspect", START) as writer:
        commit(writer, 0)
        yield tmp_path / "a.inspect", writer


class Moments:
    """Counts the statements and the copied files of a reading, and does something at the nth."""

    def __init__(self, patch: pytest.MonkeyPatch, nth: int, what: Callable[[], None]) -> None:
        self.count = 0
        for owner, name in ((Index, "rows"), (PrivateCopy, "_copy"), (PrivateCopy, "_header")):
            patch.setattr(owner, name, self._counted(getattr(owner, name), nth, what))

    def _counted(self, real: Callable[..., object], nth: int, what: Callable[[], None]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.count += 1
            if self.count == nth:
                what()
            return real(*arguments)

        return counted


@pytest.mark.parametrize("nth", range(1, MOST))
def test_a_commit_between_any_two_statements_of_a_refresh_is_seen(
    running: tuple[Path, Writer], nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = running
    with open_capture(path) as live:
        commit(writer, 1)
        with monkeypatch.context() as patched:
            moments = Moments(patched, nth, lambda: commit(writer, 2))
            assert live.changed()
            live.refresh()
        if moments.count < nth:
            commit(writer, 2)
        while live.changed():
            live.refresh()
        with open_capture(path) as fresh:
            assert said(live) == said(fresh)
        assert len(live.channels) == 3 and not live.damage and live.labels("step")[-1] == "b2"


def test_there_are_fewer_statements_than_were_tried(
    running: tuple[Path, Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = running
    with open_capture(path) as live:
        commit(writer, 1)
        with monkeypatch.context() as patched:
            moments = Moments(patched, -1, lambda: None)
            live.refresh()
        assert 12 <= moments.count < MOST - 1


@pytest.mark.parametrize("nth", range(2, MOST, 3))
def test_a_checkpoint_and_a_new_log_between_any_two_moments_of_a_refresh(
    running: tuple[Path, Writer], nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is brought into the index and begun anew, which changes the files that are being copied."""
    path, writer = running

    def checkpoint() -> None:
        for number in (2, 3):
            writer._store._open().index.execute("PRAGMA wal_checkpoint(RESTART)")
            commit(writer, number)

    with open_capture(path) as live:
        commit(writer, 1)
        with monkeypatch.context() as patched:
            moments = Moments(patched, nth, checkpoint)
            live.refresh()
        if moments.count < nth:
            checkpoint()
        while live.changed():
            live.refresh()
        with open_capture(path) as fresh:
            assert said(live) == said(fresh)
        assert len(live.channels) == 4 and not live.damage


@pytest.mark.parametrize("nth", range(1, 16))
def test_a_commit_between_any_two_statements_of_opening_is_seen(
    running: tuple[Path, Writer], nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = running
    real, count = Index.rows, 0

    def rows(self: Index, *arguments: object) -> object:
        nonlocal count
        count += 1
        if count == nth:
            commit(writer, 1)
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Index, "rows", rows)
    live = open_capture(path)
    monkeypatch.setattr(Index, "rows", real)
    with live:
        if count < nth:
            commit(writer, 1)
        while live.changed():
            live.refresh()
        with open_capture(path) as fresh:
            assert said(live) == said(fresh) and not live.damage


def test_no_read_transaction_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction left open would keep away whoever wants to write."""
    path = write(tmp_path / "a.inspect", numbers())
    with open_capture(path) as live:
        assert live._index is not None

        def broken(*_: object) -> object:
            raise RuntimeError("a fault in the middle of a refresh")

        with monkeypatch.context() as patched:
            patched.setattr(Index, "_data_version", broken)
            with pytest.raises(RuntimeError):
                live.refresh()
        assert not live._index.connection.in_transaction
        other = sqlite3.connect(path / INDEX, timeout=0.0, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        assert live.refresh() == frozenset()  # locked: tried again later
        other.execute("ROLLBACK")
        other.close()
        live.refresh()
        assert not live.damage


def test_a_page_that_comes_before_its_channel_waits_for_it(tmp_path: Path) -> None:
    """Another writer may commit in any order; a page that has no place yet is tried again."""
    path = write(tmp_path / "a.inspect", numbers(), done=False)
    index = sqlite3.connect(path / INDEX)
    row = index.execute("SELECT * FROM channels").fetchone()
    index.execute("DELETE FROM channels")
    index.commit()
    with open_capture(path) as live:
        assert not live.channels and [one.anywhere for one in live.damage] == [True] * 6
        assert live.damaged[0] == "1 channel is missing from the index (number 1)."
        index.execute("INSERT INTO channels VALUES (?, ?, ?, ?)", row)
        index.commit()
        assert live.changed() and live.refresh() == {"rnn.l0:h"}
        np.testing.assert_array_equal(live.array("rnn.l0:h"), numbers())
        assert not live.damage
    index.close()


def test_names_that_begin_beyond_what_is_known_wait_for_those_before(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Labels("step", ("c", "d"), 0, 2))
        writer.write(Labels("step", ("e",), 0, 4))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            assert live.labels("step", 0) == () and not live.damage
            writer.write(Labels("step", ("a", "b"), 0, 0))
            writer.flush()
            live.refresh()
            assert live.labels("step", 0) == tuple("abcde")
            writer.write(Labels("class", ("z",), -1, 7))
            writer.write(RunStop("done"))
            writer.flush()
            live.refresh()
            assert live.labels("class") == () and "'class' from 7" in live.damaged[0]


def test_a_locked_index_is_tried_again(running: tuple[Path, Writer], monkeypatch: pytest.MonkeyPatch) -> None:
    path, writer = running
    with open_capture(path) as live:
        commit(writer, 1)

        def locked(*_: object) -> object:
            from inspector.capture.layout import BusyError

            raise BusyError("The index is locked.")

        with monkeypatch.context() as patched:
            patched.setattr(Index, "since", locked)
            assert live.refresh() == frozenset()
        assert not live.damage and live.changed()
        assert "layer1:h" in live.refresh()


def test_an_index_that_breaks_while_it_is_shown_is_damage_and_no_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    with open_capture(path) as live:
        other = sqlite3.connect(path / INDEX)
        other.execute("ALTER TABLE notes RENAME TO other")
        other.commit()
        assert live.changed() and live.refresh() == frozenset()
        assert "does not have the tables of a capture" in live.damaged[0]
        np.testing.assert_array_equal(live.array("rnn.l0:h"), numbers())
        assert not live.changed()  # it is left alone for a while
        other.execute("ALTER TABLE other RENAME TO notes")
        other.commit()
        other.close()
        live._retry = 0.0
        assert live.changed()
        live.refresh()
        assert not live.damage


def test_a_row_that_cannot_be_read_is_damage_and_takes_nothing_along(running: tuple[Path, Writer]) -> None:
    path, writer = running
    with open_capture(path) as live:
        rows = writer._store._open()
        for table in ("run", "frames", "notes"):
            rows._record(table, "{", "x" if table == "notes" else "")
        commit(writer, 1)
        live.refresh()
        assert len(live.damage) == 3 and "layer1:h" in live.channels and len(live.frames) == 2
        assert not any(one.anywhere for one in live.damage)


def test_a_channel_of_format_1_that_is_declared_twice_is_left_out_the_second_time(tmp_path: Path) -> None:
    path = as_format_1(write(tmp_path / "a.inspect", numbers()))
    index = sqlite3.connect(path / INDEX)
    (text,) = index.execute("SELECT record FROM channels").fetchone()
    other = text.replace('["step", "unit"]', '["step"]').replace("[null, 4]", "[null]")
    index.execute("INSERT INTO channels (id, name, record) VALUES (2, 'other', ?)", (other,))
    index.execute("INSERT INTO pages SELECT 6, 2, 0, 0, 0, 16, '[0]', '[4]', crc FROM pages WHERE id = 1")
    index.commit()
    index.close()
    with open_capture(path) as capture:
        np.testing.assert_array_equal(capture.array("rnn.l0:h"), numbers())
        assert "declared twice" in capture.damaged[0]
