"""No file of a capture is mapped into memory: cutting one while it is open, finished or not, ends no process."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, as_format_1, channel, numbers, write

from inspector.capture import CaptureError, Writer, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.records import Page, RunStop

LEFT_BY_A_KILL = """
import os, sys
import numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart
writer = Writer(sys.argv[1], RunStart(run="r", title="t"))
writer.write(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(None, 4)))
for step in range(0, 4000, 8):
    writer.write(Page("rnn.l0:h", 0, (step, 0), np.full((8, 4), step, np.float32)))
writer.flush()
os.kill(os.getpid(), 9)
"""
FOLLOW_WHILE_IT_IS_CUT = """
import os, sys
from pathlib import Path
from inspector.capture import CaptureError, open_capture
folder = Path(sys.argv[1])
capture = open_capture(folder)
print("mapped", sum(str(folder) in line for line in Path("/proc/self/maps").read_text().splitlines()))
for name in sorted(path.name for path in folder.iterdir()):
    for size in (100, 0):
        os.truncate(folder / name, size)
        for _ in range(3):
            capture.changed(), capture.refresh(), capture.status, capture.damaged, capture.look()
            capture._retry = 0.0
            capture.array("rnn.l0:h")
print("lives", capture.damaged[0])
"""


def followed(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", FOLLOW_WHILE_IT_IS_CUT, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert "lives" in done.stdout and "mapped 0" in done.stdout, done.stdout
    return done.stdout


def test_a_capture_whose_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    subprocess.run([sys.executable, "-c", LEFT_BY_A_KILL, str(path)], check=False, timeout=60)
    assert (path / f"{INDEX}-wal").stat().st_size and not (path / f"{INDEX}-shm").exists()
    with open_capture(path) as capture:
        assert capture.status == "unfinished" and capture.extent(NAME) == (4000, 4) and not capture.verify()
    with open_capture(pack(path)) as packed:
        assert packed.extent(NAME) == (4000, 4)
    assert (path / f"{INDEX}-wal").stat().st_size  # reading changed nothing
    followed(path)


def test_a_capture_in_the_log_of_another_program_that_shares_memory(tmp_path: Path) -> None:
    """As captures of format 1 whose writer was killed, or is still writing."""
    path = as_format_1(write(tmp_path / "a.inspect", numbers(), done=False))
    writer = sqlite3.connect(path / INDEX, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute('INSERT INTO notes (kind, record) VALUES (\'Log\', \'{"record": "Log", "text": "said"}\')')
    assert (path / f"{INDEX}-shm").exists()
    with open_capture(path) as capture:
        assert [log.text for log in capture.logs] == ["said"] and not capture.changed()
        writer.execute('INSERT INTO notes (kind, record) VALUES (\'Log\', \'{"record": "Log", "text": "more"}\')')
        assert capture.changed()
        capture.refresh()
        assert [log.text for log in capture.logs] == ["said", "more"] and not capture.changed()
    copy = tmp_path / "b.inspect"
    shutil.copytree(path, copy)
    writer.close()
    followed(copy)


def test_a_capture_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (0, 0), numbers()))
        writer.flush()
        maps = Path("/proc/self/maps")
        if maps.exists():
            assert str(path) not in maps.read_text()
        assert not (path / f"{INDEX}-shm").exists()
        copy = tmp_path / "b.inspect"
        shutil.copytree(path, copy)
        with open_capture(path) as live:
            assert live.extent(NAME) == (40, 4)
        writer.write(RunStop("done"))
    followed(copy)
    followed(path)


def test_a_capture_that_is_being_made_is_waited_for(tmp_path: Path) -> None:
    """SQLite's file is empty until its first change is stored: 4 tests of a CI run failed by that moment."""
    values = numbers()
    made = write(tmp_path / "made.inspect", values)
    young = tmp_path / "young.inspect"
    young.mkdir()
    (young / INDEX).touch()

    def finished() -> None:
        time.sleep(0.2)
        for file in made.iterdir():
            if file.name != INDEX:
                shutil.copy(file, young)
        shutil.copy(made / INDEX, young / "unfinished")
        (young / "unfinished").replace(young / INDEX)

    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(finished)
        with open_capture(young) as capture:
            np.testing.assert_array_equal(capture.array(NAME), values)
        making.result()


def test_an_index_that_is_cut_to_nothing_is_told_and_what_was_read_stays(tmp_path: Path) -> None:
    for number, done in enumerate((True, False)):
        path = write(tmp_path / f"{number}.inspect", numbers(), done=done)
        with open_capture(path) as capture:
            array = capture.array(NAME)
            os.truncate(path / INDEX, 0)
            assert capture.changed()
            assert capture.refresh() == frozenset()
            assert "is an empty capture" in capture.damaged[0]
            assert capture.status == ("done" if done else "unfinished")
            assert not capture.changed()  # left alone for a while
            np.testing.assert_array_equal(capture.array(NAME), array)
        with pytest.raises(CaptureError, match="empty capture"):
            open_capture(path)


def test_a_running_capture_whose_index_is_cut_is_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with pytest.raises(CaptureError), Writer(path, START) as writer:
        writer.write(channel())
        writer.flush()
        with open_capture(path) as live:
            assert live.status == "running"
            os.truncate(path / INDEX, 0)
            os.truncate(path / f"{INDEX}-wal", 0)
            live.refresh()
            assert live.status == "unfinished" and "empty capture" in live.damaged[0]
        writer.write(Page(NAME, 0, (0, 0), numbers()))


def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            (private,) = (tmp_path / "t").iterdir()
            assert private.stat().st_mode & 0o777 == 0o700
            writer.write(RunStop("done"))
            writer.close()
            live.refresh()
            assert live.status == "done" and not list((tmp_path / "t").iterdir())


def test_looking_for_news_costs_little_and_does_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture.snapshot import PrivateCopy

    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            monkeypatch.setattr(PrivateCopy, "_copy", lambda *_: pytest.fail("it was copied though nothing is new"))
            before = time.perf_counter()
            for _ in range(1000):
                assert not live.changed()
            looks = time.perf_counter() - before
            before = time.perf_counter()
            for _ in range(1000):
                os.stat(tmp_path / "a.inspect" / INDEX)  # noqa: PTH116 - the least that can be asked
            assert looks < 40 * (time.perf_counter() - before)
