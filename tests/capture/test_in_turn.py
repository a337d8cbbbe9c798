"""Writers of one capture begin and end one after the other: two that write notes by turns destroy nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from captures import numbers, write

from inspector.capture import CaptureError, Writer, add_note, notes, open_capture
from inspector.capture import store as store_module
from inspector.capture.in_turn import in_turn
from inspector.capture.rows import Rows
from inspector.capture.store import Store
from inspector.records import Noted

NOTES = """
import sys, time
from pathlib import Path
from inspector.capture import CaptureError, add_note, open_capture
from inspector.records import Noted
written = 0
with open_capture(Path(sys.argv[1])) as capture:
    end = time.monotonic() + 60
    while written < 15 and time.monotonic() < end:
        try:
            add_note(capture, Noted(step=1), f"{sys.argv[2]} {written}")
            written += 1
        except CaptureError as problem:
            if "is being written" not in str(problem):
                raise
        capture.refresh()
print(written)
"""
posix = pytest.mark.skipif(sys.platform == "win32", reason="SQLite's own locks are enough there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "a.inspect", numbers(20, 4), rows=10)
    return tmp_path / "a.inspect"


def test_two_processes_that_write_notes_lose_none(path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", NOTES, str(path), name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "other")
    ]
    assert [int(one.communicate(timeout=120)[0]) for one in both] == [15, 15]
    with open_capture(path) as capture:
        assert {note.text for note in notes(capture)} == {f"{who} {n}" for who in ("one", "other") for n in range(15)}
        assert not capture.verify() and capture.status == "done"


@posix
def test_nobody_begins_before_the_end_of_another_is_complete(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From when the lease is given up until the log is in the index."""
    seen: list[bool] = []
    give_up = Store._give_up_lease

    def last(self: Store) -> None:
        give_up(self)
        with in_turn(path, 0.0) as alone:
            seen.append(alone)

    monkeypatch.setattr(Store, "_give_up_lease", last)
    with open_capture(path) as capture:
        add_note(capture, Noted(), "a note")
    assert seen == [False]
    with in_turn(path, 0.0) as alone:
        assert alone


@posix
def test_one_that_begins_waits_and_is_refused_where_the_other_takes_too_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hold(entered: threading.Event) -> None:
        with in_turn(path, 0.0):
            entered.set()
            over.wait(30)

    for patience, refused in ((0.05, True), (30.0, False)):
        over.clear()
        monkeypatch.setattr(store_module, "LOCK_SECONDS", patience)
        entered = threading.Event()
        holder = threading.Thread(target=hold, args=(entered,))
        holder.start()
        entered.wait(30)
        if not refused:
            threading.Timer(0.1, over.set).start()
        with open_capture(path) as capture:
            if refused:
                with pytest.raises(CaptureError, match="is being written by another run"):
                    add_note(capture, Noted(), "a note")
                over.set()
            else:
                add_note(capture, Noted(), "a note")
                capture.refresh()
                assert [note.text for note in notes(capture)] == ["a note"]
        holder.join()


def test_a_writer_that_cannot_begin_leaves_no_lease(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the capture would be taken for one that is written until the process ends."""

    def fails(_: Rows) -> None:
        raise OSError(5, "Input/output error")

    with open_capture(path) as capture, monkeypatch.context() as patch:
        patch.setattr(Rows, "log_changes", fails)
        with pytest.raises(CaptureError, match="Input/output error"):
            Writer(path, capture.start, again=True)
    with open_capture(path) as capture:
        assert capture.status == "done"
        add_note(capture, Noted(), "a note")
