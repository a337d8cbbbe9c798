"""The runs that windows keep: none that a window shows or writes is removed, whatever clocks and other windows do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.capture.kept import GOING, HELD, KeptRuns
from inspector.capture.layout import INDEX
from inspector.records import Channel, Page, RunStart, RunStop

WRITES = """
import sys, time, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart
writer = Writer(sys.argv[1], RunStart(run="theirs", title="t"))
writer.write(Channel(name="a:h", kind="state", dims=("step",), shape=(None,), title="h"))
writer.write(Page("a:h", 0, (0,), np.ones(8, np.float32)))
writer.flush()
print("ready", flush=True)
sys.stdin.readline()
"""
SHOWS = """
import sys
from pathlib import Path
from inspector.gui.state.session import Session
session = Session(None, Path(sys.argv[1]).parent)
session.open_capture(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(session.capture.array("a:h").sum(), flush=True)
session.close()
"""
PRUNES = """
import sys
from pathlib import Path
from inspector.capture.kept import KeptRuns
kept = KeptRuns(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for keep in range(30, 2, -1):
    kept.prune(keep)
"""


def make(path: Path) -> Path:
    with Writer(path, RunStart(run=path.name, title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step",), shape=(None,), title="h"))
        writer.write(Page("a:h", 0, (0,), np.ones(8, np.float32)))
        writer.write(RunStop("done"))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != HELD)


def other(script: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process that has done its first part."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_the_newest_are_kept_by_number_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptRuns(tmp_path)
    made = []
    for day in (28, 27, 2, 1):
        monkeypatch.setattr(time, "strftime", lambda _form, day=day: f"202601{day:02d}-000000")
        made.append(make(kept.next_path()).name)
    assert made == sorted(made) and len(set(made)) == 4
    KeptRuns(tmp_path).prune(2)
    assert names(tmp_path) == made[2:]


def test_runs_of_earlier_versions_go_first_and_numbers_never_come_twice(tmp_path: Path) -> None:
    old = [make(tmp_path / f"2026010{day}-120000-000001.inspect").name for day in (1, 2)]
    kept = KeptRuns(tmp_path)
    first, second = kept.next_path(), kept.next_path()
    assert first.name < second.name, "before any of them was written"
    make(second)
    assert KeptRuns(tmp_path).next_path().name > second.name
    kept.prune(2)
    assert names(tmp_path) == [old[1], second.name]


def test_a_capture_that_another_process_writes_or_shows_is_never_removed(tmp_path: Path) -> None:
    paths = [tmp_path / f"run-00000{number}-x.inspect" for number in range(1, 7)]
    for path in paths[1:]:
        make(path)
    writing, showing = other(WRITES, str(paths[0])), other(SHOWS, str(paths[1]))
    kept = KeptRuns(tmp_path)
    kept.hold([paths[2], tmp_path.parent / "elsewhere.inspect"])
    kept.prune(1)
    assert names(tmp_path) == [path.name for path in (*paths[:3], paths[5])]
    assert showing.communicate("\n")[0].strip() == "8.0", "it still reads what it shows"
    writing.communicate("\n")
    kept.release()
    KeptRuns(tmp_path).prune(1)
    assert names(tmp_path) == [paths[5].name]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_word_of_a_killed_window_does_not_count(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"run-00000{number}-x.inspect") for number in (1, 2)]
    showing = other(SHOWS, str(paths[0]))
    showing.kill()
    showing.communicate()
    assert list((tmp_path / HELD).iterdir())
    KeptRuns(tmp_path).prune(1)
    assert names(tmp_path) == [paths[1].name] and not list((tmp_path / HELD).iterdir())


def test_two_processes_that_prune_at_once(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"run-{number:06d}-x.inspect") for number in range(30)]
    showing = other(SHOWS, str(paths[4]))
    pruning = [other(PRUNES, str(tmp_path)) for _ in range(2)]
    for process in pruning:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in pruning] == ["", ""]
    assert [process.returncode for process in pruning] == [0, 0]
    assert names(tmp_path) == [path.name for path in (paths[4], *paths[28:])] or names(tmp_path) == [
        path.name for path in (paths[4], *paths[27:])
    ]
    assert showing.communicate("\n")[0].strip() == "8.0"


def test_a_window_that_asks_for_a_capture_while_it_is_going_gets_it_back(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"run-00000{number}-x.inspect") for number in (1, 2)]
    for path in paths:
        path.rename(path.with_name(path.name + GOING))  # a window was killed in the middle of it
    showing = KeptRuns(tmp_path)
    showing.hold([paths[0]])
    KeptRuns(tmp_path).prune(5)
    assert names(tmp_path) == [paths[0].name]
    with open_capture(paths[0]) as capture:
        assert capture.array("a:h").sum() == 8


def test_nothing_but_captures_is_removed(tmp_path: Path) -> None:
    foreign = tmp_path / "run-000001-x.inspect"
    foreign.mkdir()
    (foreign / INDEX).write_bytes(b"mine")
    mixed = make(tmp_path / "run-000002-x.inspect")
    (mixed / "notes.txt").write_text("mine")
    outside = make(tmp_path.parent / "outside.inspect")
    (tmp_path / "run-000003-x.inspect").symlink_to(outside)
    (tmp_path / "run-000004-x.inspect").write_text("mine")
    (tmp_path / "run-000005-x.inspect").mkdir()
    KeptRuns(tmp_path).prune(0)
    assert (foreign / INDEX).read_bytes() == b"mine"
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sorted(left) == [INDEX, "notes.txt", "run-000004-x.inspect"]
    assert (outside / INDEX).is_file() and not (tmp_path / "run-000005-x.inspect").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_what_windows_keep_is_private(tmp_path: Path) -> None:
    kept = KeptRuns(tmp_path / "runs")
    path = make(kept.next_path())
    kept.hold([path])
    assert [(tmp_path / "runs").stat().st_mode & 0o77, path.stat().st_mode & 0o77] == [0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_named_pipe_among_the_words_of_windows_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / ".held").mkdir()
    os.mkfifo(tmp_path / ".held" / "x.json")
    code = "import sys\nfrom pathlib import Path\nfrom inspector.capture.kept import KeptRuns\nKeptRuns(Path(sys.argv[1])).prune(1)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60).returncode == 0
