"""Logs whose contents change beneath a reader: rows written anew, headers in the middle, cut rows, folders that go."""

from __future__ import annotations

import gzip
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from inspector.capture import CaptureError, LogView, open_log
from inspector.capture.logs import lines as reading
from inspector.capture.logs import tail
from inspector.capture.logs.marks import MOST, WHOLE, Marks

ROW = '{{"step": {0}, "loss": {1}}}\n'


def loss(log: LogView) -> list[float]:
    return [float(value) for value in log.array("log:loss")]


def steps(log: LogView) -> list[float]:
    return [float(value) for value in log.array("log:iteration")]


def test_rows_in_the_middle_that_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(ROW.format(step, 0.5) for step in range(10, 60)))
    log = open_log(path)
    path.write_text("".join(ROW.format(step, 9.5 if step == 30 else 0.5) for step in range(10, 62)))
    log.refresh()
    assert loss(log) == [9.5 if step == 30 else 0.5 for step in range(10, 62)]


def test_another_run_with_as_many_bytes_and_more(tmp_path: Path) -> None:
    """The first 64 bytes are those of the header, the 64 before the place that was reached the same in both."""
    names, zeros = ",".join(f"c{n}" for n in range(20)), ",0.0" * 20
    path = tmp_path / "metrics.csv"
    path.write_text(f"step,loss,{names}\n" + "".join(f"{n},{n + 1}{zeros}\n" for n in range(5)))
    log = open_log(path)
    path.write_text(f"step,loss,{names}\n" + "".join(f"{n},{9 - n}{zeros}\n" for n in range(7)))
    log.refresh()
    assert loss(log) == [9, 8, 7, 6, 5, 4, 3]


def test_a_time_that_is_set_back_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(ROW.format(0, 1))
    found, log = path.stat(), open_log(path)
    path.write_text(ROW.format(0, 2))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    log.refresh()
    assert loss(log) == [2]


def test_marks_of_a_large_file_are_bounded_and_find_another_one(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * (64 << 10))
    marks = Marks()
    with path.open("rb", buffering=0) as file:
        for at in (10, WHOLE + 5, 3 << 20, 16 << 20):
            marks.note(file, at)
            assert marks.same(file)
    assert MOST // 4 < len(marks._places) <= MOST
    with path.open("r+b") as file:
        file.seek(8 << 20)
        file.write(bytes(4 << 20))
    with path.open("rb", buffering=0) as file:
        assert not marks.same(file)


@pytest.mark.parametrize(
    ("second", "channels"),
    [
        ("step,acc,loss\n2,0.7,3\n", {"log:loss": [1, 2, 3], "log:acc": [0.5, 0.6, 0.7]}),
        ("step,lr,loss,acc\n2,0.1,3,0.7\n", {"log:loss": [1, 2, 3], "log:acc": [0.5, 0.6, 0.7], "log:lr": [0.1]}),
        ("step,loss,acc\n2,3,0.7\n", {"log:loss": [1, 2, 3], "log:acc": [0.5, 0.6, 0.7]}),
        ("step;loss;acc\n2;3,0;0,7\n", {"log:loss": [1, 2, 3], "log:acc": [0.5, 0.6, 0.7]}),
    ],
    ids=["exchanged", "one more", "the same", "another separator"],
)
@pytest.mark.parametrize("followed", [True, False])
def test_a_second_header_holds_from_there_on(
    tmp_path: Path, second: str, channels: dict[str, list[float]], followed: bool
) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss,acc\n0,1,0.5\n1,2,0.6\n" + ("" if followed else second))
    log = open_log(path)
    if followed:
        with path.open("a") as file:
            file.write(second)
        log.refresh()
    assert {name: list(log.array(name)) for name in channels} == channels and not log.damaged


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("loss,step\n1.25,100\n1.25,101\n1.25,10", "step is not above the one before"),
        ("step,loss,acc\n100,1,0.5\n101,1,0.5\n102,1.2", "2 cells where the one before has 3"),
        ("step,loss\n99,1.25\n100,1.31\n101,1.07\n102,1.0", "fewer decimals than all before"),
    ],
)
def test_a_last_row_that_is_cut_in_a_number(tmp_path: Path, rows: str, said: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(rows)
    os.utime(path, (1e9, 1e9))
    log = open_log(path)
    assert steps(log)[-2:] == [100, 101] and said in log.damaged[0] and not log.events
    with path.open("a") as file:
        file.write("2\n" if "loss,step" in rows else "5,0.5\n" if "acc" in rows else "5\n")
    log.refresh()
    assert steps(log)[-2:] == [101, 102] and not log.damaged


def test_a_last_row_without_an_end_that_is_whole_counts(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,10\n1,9.75\n2,9.5\n3,8")
    os.utime(path, (1e9, 1e9))
    assert loss(open_log(path)) == [10, 9.75, 9.5, 8]


@pytest.mark.parametrize("name", ["metrics.csv", "metrics.jsonl"])
@pytest.mark.parametrize("pieces", [1, 5])
def test_what_follows_a_line_that_is_too_long_is_read(
    tmp_path: Path, name: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST", 1000)
    monkeypatch.setattr(reading, "PIECE", 300)
    monkeypatch.setattr(reading, "PASSED_OVER", 500)
    path = tmp_path / name
    table = name.endswith("csv")
    begin = "step,loss\n0,1\n" if table else ROW.format(0, 1)
    after = "2,3\n" if table else ROW.format(2, 3)
    path.write_text(begin)
    log = open_log(path)
    for _ in range(pieces):
        with path.open("a") as file:
            file.write("x" * (5000 // pieces))
        log.refresh()
    with path.open("a") as file:
        file.write("\n" + after)
    for _ in range(20):
        log.refresh()
    assert loss(log) == [1, 3] and len(log.damaged) == 1 and "is left out" in log.damaged[0]
    assert loss(open_log(path)) == [1, 3]


@pytest.mark.parametrize("name", ["metrics.csv", "metrics.jsonl"])
def test_what_is_compressed_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("step,loss\n0,1\n" if name.endswith("csv") else ROW.format(0, 1))
    log = open_log(path)
    path.write_bytes(gzip.compress(path.read_bytes() * 9))
    log.refresh()
    assert log.damaged == [f"{name} is compressed with gzip; expected text: unpack it first."]
    with pytest.raises(CaptureError, match="compressed with gzip"):
        open_log(path)


def test_a_folder_that_is_removed_while_it_is_followed_and_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "metrics.csv").write_text("step,loss\n0,1\n")
    log = open_log(folder)
    shutil.rmtree(folder)
    log.source._searched = -math.inf
    log.refresh()
    assert loss(log) == [1] and log.damaged == [
        "runs cannot be looked through for new files: No such file or directory."
    ]
    folder.mkdir()
    (folder / "metrics.csv").write_text("step,loss\n0,7\n")
    log.source._searched = -math.inf
    log.refresh()
    assert loss(log) == [7] and not log.damaged


def test_a_disk_that_fails_for_a_moment_leaves_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,1\n")
    log = open_log(path)
    with monkeypatch.context() as patch:
        patch.setattr(tail, "open_unbuffered", lambda _path: (_ for _ in ()).throw(OSError(116, "Stale file handle")))
        log.refresh()
        assert loss(log) == [1] and log.damaged == ["metrics.csv cannot be read: Stale file handle."]
    with path.open("a") as file:
        file.write("1,2\n")
    log.refresh()
    assert loss(log) == [1, 2] and not log.damaged


def test_a_run_whose_file_is_now_of_another_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0, "loss": 1, "run": "a"}\n{"step": 1, "loss": 1, "run": "a"}\n')
    log = open_log(path)
    path.write_text('{"step": 0, "loss": 2, "run": "b"}\n')
    log.refresh()
    assert log.shown == ("a",) and not log.channels
    assert log.damaged == ["The run a is not in metrics.jsonl any more, whose contents were replaced."]


def test_links_in_a_circle_and_folders_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "metrics.csv").write_text("step,loss\n0,1\n")
    assert loss(open_log(tmp_path)) == [1]
    closed = tmp_path / "closed"
    closed.mkdir()
    scan = os.scandir

    def refused(path: Path) -> object:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied")
        return scan(path)

    def unknown(path: Path, **more: Any) -> os.stat_result:
        if Path(path).parent == closed:
            raise PermissionError(13, "Permission denied")
        return stat(path, **more)

    stat = os.stat
    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(os, "stat", unknown)
    log = open_log(tmp_path)
    assert loss(log) == [1] and log.damaged == ["closed cannot be looked into: Permission denied."]
