"""A capture is replaced whole or not at all, and only where that was asked for."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_captures import CHANNEL, OTHERS, capture_at, contents, page, start

from inspector.capture import CaptureError, Writer, appending, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.capture.rows import Rows
from inspector.capture.store import Store
from inspector.capture.target import is_ours
from inspector.records import Channel, Frame, Log, Page, RunStop

OVERWRITE_FOR_EVER = """
import sys, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart, RunStop
for number in range(1, 10_000):
    with Writer(sys.argv[1], RunStart(run=str(number), title="t"), overwrite=True) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h"))
        for step in range(0, 40, 8):
            writer.write(Page("a:h", 0, (step, 0), np.full((8, 4), number, np.float32)))
            writer.flush()
            print(number, flush=True)
        writer.write(RunStop("done"))
"""


# -- replacing a capture


def test_a_capture_is_replaced_only_when_it_is_asked_for(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    before = contents(path)
    with pytest.raises(CaptureError, match="--overwrite"):
        Writer(path, start("new"))
    assert contents(path) == before


def test_the_old_capture_stays_until_the_new_one_has_its_first_page(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    before = contents(path)
    writer = Writer(path, start("new"), overwrite=True)
    writer.write(Frame(index=0))
    writer.write(CHANNEL)
    writer.write(Log("the model runs"))
    writer.flush()
    assert contents(path) == before and not writer.begun
    writer.write(page(2.0))
    writer.flush()
    with open_capture(path) as capture:
        assert writer.begun and capture.start.run == "new" and capture.status == "running"
        assert [log.text for log in capture.logs] == ["the model runs"]
        np.testing.assert_array_equal(capture.array("a:h"), np.full((8, 4), 2.0))
    writer.write(page(3.0, 8))
    writer.write(RunStop("done"))
    writer.close()
    with open_capture(path) as capture:
        assert capture.status == "done" and not capture.damaged and not capture.verify()
        assert capture.array("a:h")[:, 0].tolist() == [2.0] * 8 + [3.0] * 8
        assert len(capture.frames) == len(capture.channels) == 1
    assert len(contents(path)) == 2, "no file of the old capture is left"
    with open_capture(pack(path)) as packed:
        assert packed.array("a:h").shape == (16, 4)


@pytest.mark.parametrize("stop", [RunStop("failed", "The model raised."), RunStop("cancelled"), None])
def test_a_run_that_captures_nothing_leaves_the_old_capture_byte_for_byte(tmp_path: Path, stop: RunStop | None) -> None:
    path = capture_at(tmp_path / "a.inspect")
    before = contents(path)
    with Writer(path, start("new"), overwrite=True) as writer:
        for record in (Frame(index=0), CHANNEL, Log("said", "error"), *([stop] if stop else ())):
            writer.write(record)
    assert contents(path) == before and not writer.begun


def test_a_run_that_is_done_without_a_page_replaces_the_old_capture(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    with Writer(path, start("new"), overwrite=True) as writer:
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert capture.start.run == "new" and capture.status == "done" and not capture.channels


def test_other_files_in_the_folder_of_a_capture_stay(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    for name, data in OTHERS.items():
        (path / name).write_bytes(data)
    (path / "notes").mkdir()
    (path / "pages-0007.bin").symlink_to(tmp_path / "elsewhere")
    with Writer(path, start("new"), overwrite=True) as writer:
        writer.write(CHANNEL)
        writer.write(page())
    assert {name: (path / name).read_bytes() for name in OTHERS} == OTHERS
    assert (path / "notes").is_dir() and (path / "pages-0007.bin").is_symlink()
    with open_capture(path) as capture:
        assert capture.start.run == "new" and not capture.verify()


def test_a_full_disk_while_replacing_keeps_the_old_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = capture_at(tmp_path / "a.inspect")
    before = contents(path)
    real = appending.PageAppender.place

    def place(self: appending.PageAppender, record: Page) -> appending.Position:
        real(self, record)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending.PageAppender, "place", place)
    writer = Writer(path, start("new"), overwrite=True)
    writer.write(CHANNEL)
    writer.write(page())
    with pytest.raises(CaptureError, match="disk is full"):
        writer.close()
    assert contents(path) == before


@pytest.mark.parametrize("damage", ["pages", "schema", "lease"])
def test_a_damaged_capture_can_be_replaced(tmp_path: Path, damage: str) -> None:
    path = capture_at(tmp_path / "a.inspect")
    data = bytearray((path / INDEX).read_bytes())
    if damage == "pages":
        data[4096:] = b"\xff" * (len(data) - 4096)
    elif damage == "schema":
        data[100:4096] = b"\xff" * 3996
    (path / INDEX).write_bytes(data)
    if damage == "lease":
        with sqlite3.connect(path / INDEX) as index:
            index.execute("DROP TABLE lease")
            index.execute("CREATE VIEW lease2 AS SELECT 1")
            index.execute("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END")
        index.close()
    with Writer(path, start("new"), overwrite=True) as writer:
        writer.write(CHANNEL)
        writer.write(page(5.0))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert capture.start.run == "new" and capture.array("a:h")[0, 0] == 5.0 and not capture.damaged
    assert len(contents(path)) == 2


def test_a_reader_of_the_path_sees_the_new_run_whole(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    with open_capture(path) as reader, Writer(path, start("new"), overwrite=True) as writer:
        assert reader.array("a:h").shape == (8, 4)
        other = Channel(name="b:h", kind="state", dims=("step",), shape=(None,), title="h")
        for record in (Frame(index=0, label="fresh"), other, Page("b:h", 0, (0,), np.arange(3, dtype=np.float32))):
            writer.write(record)
        writer.flush()
        assert reader.changed() and reader.refresh() == {"b:h"}
        assert list(reader.channels) == ["b:h"] and [frame.label for frame in reader.frames] == ["fresh"]
        assert reader.start.run == "new" and reader.stop is None and reader.array("b:h").tolist() == [0, 1, 2]
        writer.write(Page("b:h", 0, (3,), np.arange(3, dtype=np.float32)))
        writer.flush()
        reader.refresh()
        assert reader.extent("b:h") == (6,) and not reader.damaged


# -- kills, and others at the same path


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("trial", range(8))
def test_a_kill_while_replacing_leaves_one_capture_or_the_other(tmp_path: Path, trial: int) -> None:
    path = capture_at(tmp_path / "a.inspect", run="0", value=0.0)
    process = subprocess.Popen([sys.executable, "-c", OVERWRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = int(process.stdout.readline())
    time.sleep(random.Random(trial).uniform(0.0, 0.3))
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged = max([acknowledged, *(int(word) for word in rest.split())])
    assert is_ours(path / INDEX), "a killed run's capture is known as one of ours"
    with open_capture(path) as capture:
        assert int(capture.start.run) >= acknowledged
        array = capture.array("a:h")
        assert len(array) >= 8 and (array == int(capture.start.run)).all() and not capture.damaged
    with Writer(path, start("after"), overwrite=True) as writer:
        writer.write(CHANNEL)
        writer.write(page())
    with open_capture(path) as capture:
        assert capture.start.run == "after" and not capture.damaged
    assert len(contents(path)) == 2, "what the killed run left is cleared away"


def test_of_two_that_would_replace_a_capture_the_second_is_refused(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    first, second = (Writer(path, start(name), overwrite=True) for name in ("first", "second"))
    for writer in (first, second):
        writer.write(CHANNEL)
    first.write(page(2.0))
    first.flush()
    second.write(page(3.0))
    with pytest.raises(CaptureError, match="another run"):
        second.flush()
    first.write(page(2.0, 8))
    first.close()
    with pytest.raises(CaptureError):
        second.close()
    with open_capture(path) as capture:
        assert capture.start.run == "first" and (capture.array("a:h") == 2.0).all()
    assert len(contents(path)) == 2


# -- one file to mail


def test_packing_replaces_only_a_packed_capture_and_only_when_asked_to(tmp_path: Path) -> None:
    path = capture_at(tmp_path / "a.inspect")
    (path / "pages-of-my-thesis.bin").write_bytes(b"mine")
    (tmp_path / "a.inspect.zip.part").write_text("mine")
    packed = pack(path)
    with open_capture(packed) as capture:
        assert capture.extent("a:h") == (8, 4)
    with pytest.raises(CaptureError, match="--overwrite"):
        pack(path)
    assert pack(path, overwrite=True) == packed
    (tmp_path / "thesis.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (tmp_path / "link.zip").symlink_to(packed)
    for name in ("thesis.zip", "link.zip", "a.inspect"):
        before = contents(tmp_path)
        with pytest.raises(CaptureError, match="not a packed capture"):
            pack(path, tmp_path / name, overwrite=True)
        assert contents(tmp_path) == before
    assert (tmp_path / "a.inspect.zip.part").read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_a_run_that_replaces_the_capture_in_between_is_not_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writer is about to take an old capture's place while another does so from beginning to end, on a disk that
    has no locks by which they would take turns."""
    monkeypatch.setattr("inspector.capture.in_turn._opened", lambda _: -1)
    path = capture_at(tmp_path / "a.inspect")
    plain, began = Store._emptied, []

    def late(self: Store) -> Rows:
        if not began:
            began.append(True)
            capture_between(path)
        return plain(self)

    def capture_between(at: Path) -> None:
        with Writer(at, start("between"), overwrite=True) as other:
            other.write(CHANNEL)
            other.write(page(5.0))
            other.write(RunStop("done"))

    monkeypatch.setattr(Store, "_emptied", late)
    with Writer(path, start("late"), overwrite=True) as writer:
        writer.write(CHANNEL)
        writer.write(page(7.0))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert capture.verify() == [] and capture.start.run == "late"
        assert (capture.array("a:h") == 7.0).all()
