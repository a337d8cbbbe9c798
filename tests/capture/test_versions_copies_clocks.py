"""Captures of a later minor version, copied alone during a run, closed for read-only media, written across a change of
the clock, and beside a fork."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, channel, numbers, seal, write

from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture.layout import INDEX, MAJOR, MINOR
from inspector.records import Frame, Page, RunStop


def test_a_later_minor_version_is_read_and_what_it_adds_is_left_alone(tmp_path: Path) -> None:
    values = numbers()
    path = write(tmp_path / "a.inspect", values)
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        index.execute(f"PRAGMA user_version = {MAJOR * 1000 + MINOR + 7}")
        index.execute("CREATE TABLE later (id INTEGER PRIMARY KEY, what BLOB)")
        index.execute("INSERT INTO later VALUES (1, x'00ff')")
        index.execute('UPDATE channels SET record = \'{"later": {"a": [1]}, \' || substr(record, 2)')
    seal(path)
    with open_capture(path) as capture:
        np.testing.assert_array_equal(capture.array(NAME), values)
        assert not capture.verify()


@pytest.mark.parametrize("with_log", [False, True])
def test_an_index_that_is_copied_during_a_run_has_nothing_wrong(tmp_path: Path, with_log: bool) -> None:
    """Without its log it lacks what was committed since; what it has is right, and nothing says that the run is over."""
    values, copy = numbers(400), tmp_path / "copy.inspect"
    copy.mkdir()
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        for start in range(0, 400, 8):
            writer.write(Page(NAME, 0, (start, 0), values[start : start + 8]))
            writer.flush()
        for file in (tmp_path / "a.inspect").iterdir():
            if file.is_file() and (with_log or not file.name.startswith(f"{INDEX}-")):
                shutil.copyfile(file, copy / file.name)
        writer.write(RunStop("done"))
    try:
        with open_capture(copy) as capture:
            found = capture.array(NAME)
            known = ~np.isnan(found)
            np.testing.assert_array_equal(found[known], values[: len(found)][known])
            assert capture.stop is None and (len(found) == 400 or not with_log)
    except CaptureError as problem:
        assert not with_log and "\n" not in str(problem)


def test_a_finished_capture_needs_no_file_beside_it_to_be_opened(tmp_path: Path) -> None:
    """An index that stays in WAL mode cannot be opened on a medium that is read-only."""
    path = write(tmp_path / "a.inspect", numbers())
    assert {file.name for file in path.iterdir() if file.name.startswith(INDEX)} == {INDEX}
    assert (path / INDEX).read_bytes()[18:20] == b"\x01\x01", "a rollback journal, for writing and for reading"
    before = {file.name: file.stat().st_mtime_ns for file in path.iterdir()}
    with open_capture(path) as capture:
        np.testing.assert_array_equal(capture.array(NAME), numbers())
    assert {file.name: file.stat().st_mtime_ns for file in path.iterdir()} == before


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shift, own = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: own() + shift[0])
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        for frame in range(6):
            shift[0] = -3600.0 * (frame >= 3)
            writer.write(Frame(index=frame, label=f"{frame}"))
            writer.write(Page(NAME, frame, (0, 0), np.full((2, 4), frame, np.float32)))
            writer.flush()
        with open_capture(tmp_path / "a.inspect") as capture:
            assert capture.status == "running" and [one.index for one in capture.frames] == list(range(6))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert [one.label for one in capture.frames] == list("012345") and capture.status == "done"
        assert [float(capture.array(NAME, frame)[0, 0]) for frame in range(6)] == list(range(6))


FORKS = """
import os, sys, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart, RunStop
writer = Writer(sys.argv[1], RunStart(run="r", title="t"))
writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h"))
for step in range(40):
    writer.write(Page("a:h", 0, (step, 0), np.full((1, 4), step, np.float32)))
    if step % 10 == 5:
        child = os.fork()
        if not child:
            writer.write(Page("a:h", 0, (step, 0), np.full((1, 4), -1, np.float32)))
            os._exit(0) if step % 20 == 5 else os.execvp("true", ["true"])
        os.waitpid(child, 0)
writer.write(RunStop("done"))
writer.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork")
def test_what_a_fork_of_the_writers_process_writes_is_not_in_the_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS, str(path)], check=True, timeout=120)
    with open_capture(path) as capture:
        np.testing.assert_array_equal(capture.array("a:h")[:, 0], np.arange(40))
        assert capture.status == "done" and not capture.verify()
