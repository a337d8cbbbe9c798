"""Where a capture is written: nothing of anybody else's is touched, and an old capture stays until the new one has numbers."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import CaptureError, Writer, appending, check_target, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.capture.rows import Rows
from inspector.capture.store import Store
from inspector.capture.target import is_ours
from inspector.records import Channel, Frame, Log, Page, RunStart, RunStop

CHANNEL = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h")
OTHERS = {f"{INDEX}.backup": b"a", "pages-of-my-thesis.txt": b"b", "pages-1.bin": b"c", f"{INDEX}2": b"d"}
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
WRITE_AND_WAIT = """
import sys, time, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart
writer = Writer(sys.argv[1], RunStart(run="theirs", title="t"), overwrite=True)
writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h"))
writer.write(Page("a:h", 0, (0, 0), np.ones((8, 4), np.float32)))
writer.flush()
print("ready", flush=True)
time.sleep(60)
"""


def start(run: str = "r") -> RunStart:
    return RunStart(run=run, title=f"run {run}")


def page(value: float = 1.0, first: int = 0) -> Page:
    return Page("a:h", 0, (first, 0), np.full((8, 4), value, np.float32))


def capture_at(path: Path, run: str = "old", value: float = 1.0) -> Path:
    with Writer(path, start(run)) as writer:
        writer.write(CHANNEL)
        writer.write(page(value))
        writer.write(RunStop("done"))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- what is no capture of ours


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_index_of_another_program_and_what_lies_beside_it_is_never_touched(tmp_path: Path, overwrite: bool) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    with sqlite3.connect(folder / INDEX) as index:
        index.execute("CREATE TABLE thesis (chapter)")
    index.close()
    for name, data in OTHERS.items():
        (folder / name).write_bytes(data)
    before = contents(folder)
    with pytest.raises(CaptureError, match=r"not a capture's.*another name\.$"):
        Writer(folder, start(), overwrite=overwrite)
    assert contents(folder) == before


@pytest.mark.parametrize("data", [b"", b"hello", b"SQLite format 3\x00" + bytes(84)])
def test_a_file_called_like_an_index_is_no_capture(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / INDEX).write_bytes(data)
    with pytest.raises(CaptureError, match="not a capture's"):
        Writer(tmp_path / "own", start(), overwrite=True)
    assert contents(tmp_path / "own") == {INDEX: data}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_named_pipe_called_like_an_index_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    os.mkfifo(tmp_path / "own" / INDEX)
    with pytest.raises(CaptureError, match="not a capture's"):
        Writer(tmp_path / "own", start(), overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_a_link_the_current_folder_and_a_folder_of_other_things(
    tmp_path: Path, overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture_at(tmp_path / "a.inspect")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "thesis.tex").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "a.inspect")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = contents(tmp_path)
    for name, said in (
        ("file", "is a file"), ("things", "other files"), ("link", "symbolic link"), ("dangling", "symbolic link"),
        ("here", "current directory"), ("file/below", "Not a directory"), ("n\0l", "null"),
    ):  # fmt: skip
        with pytest.raises(CaptureError, match=said) as told:
            Writer(tmp_path / name, start(), overwrite=overwrite)
        assert "\n" not in str(told.value)
    assert contents(tmp_path) == before and not (tmp_path / "nowhere").exists()


def test_an_empty_folder_and_a_new_one_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/deeper"):
        assert not check_target(tmp_path / name, overwrite=False)
        with open_capture(capture_at(tmp_path / name)) as capture:
            assert capture.status == "done"


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


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_capture_whose_writer_was_killed_at_once_is_known_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    process = subprocess.Popen([sys.executable, "-c", WRITE_AND_WAIT, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    with pytest.raises(CaptureError, match="another run"):
        Writer(path, start(), overwrite=True)
    process.kill()
    process.communicate()
    with Writer(path, start("mine"), overwrite=True) as writer:
        writer.write(CHANNEL)
        writer.write(page(7.0))
    with open_capture(path) as capture:
        assert capture.start.run == "mine" and capture.array("a:h")[0, 0] == 7.0


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


def test_two_that_begin_at_one_new_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, start("first")) as first:
        monkeypatch.setattr(
            "inspector.capture.writer.check_target", lambda _path, _overwrite: False
        )  # it looked before
        with pytest.raises(CaptureError, match="another run"):
            Writer(path, start("second"))
        first.write(CHANNEL)
        first.write(page())
    with open_capture(path) as capture:
        assert capture.start.run == "first" and capture.extent("a:h") == (8, 4)


def test_a_writer_whose_lease_was_taken_writes_no_more(tmp_path: Path) -> None:
    """As on a disk without locks that two machines share: neither sees the other's process."""
    path = tmp_path / "a.inspect"
    first = Writer(path, start("first"))
    first.write(CHANNEL)
    first.write(page())
    first.flush()
    index = first._store._open().index
    index.execute("UPDATE lease SET token = 'of another', pid = 0")
    first.write(page(1.0, 8))
    with pytest.raises(CaptureError, match="another run"):
        first.flush()
    with pytest.raises(CaptureError, match="another run"):
        first.close()
    with open_capture(path) as capture:
        assert capture.extent("a:h") == (8, 4)
    with Writer(path, start("second"), overwrite=True) as second:  # nobody that lives has it
        second.write(CHANNEL)
        second.write(page(2.0))
    with open_capture(path) as capture:
        assert capture.start.run == "second" and (capture.array("a:h") == 2.0).all() and capture.extent("a:h") == (8, 4)


def test_a_capture_that_another_process_has_locked_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As between two containers that share a folder: neither sees the other's process, but both see the lock."""
    path = tmp_path / "a.inspect"
    with Writer(path, start("first")) as first:
        first.write(CHANNEL)
        first.write(page())
        first.flush()
        monkeypatch.setattr("inspector.capture.target.is_alive", lambda _pid, _mark: False)
        monkeypatch.setattr("inspector.capture.store.LOCK_SECONDS", 0.1)
        second = Writer(path, start("second"), overwrite=True)
        second.write(CHANNEL)
        second.write(page(2.0))
        with pytest.raises(CaptureError, match="another run"):
            second.close()
        first.write(page(1.0, 8))
    with open_capture(path) as capture:
        assert capture.start.run == "first" and capture.extent("a:h") == (16, 4) and not capture.damage


@pytest.mark.skipif(sys.platform == "win32", reason="open files keep their folder")
@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
def test_a_folder_that_goes_away_under_the_writer_is_told(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.inspect"
    writer = Writer(path, start("first"))
    writer.write(CHANNEL)
    writer.write(page())
    writer.flush()
    path.rename(tmp_path / "moved.inspect")
    if how == "removed":
        for file in (tmp_path / "moved.inspect").iterdir():
            file.unlink()
    elif how == "replaced":
        other = Writer(path, start("second"))
        other.write(CHANNEL)
        other.write(page(2.0))
        other.flush()
    writer.write(page(1.0, 8))
    with pytest.raises(CaptureError, match="removed, moved or replaced"):
        writer.flush()
    with pytest.raises(CaptureError, match="removed, moved or replaced"):
        writer.close()
    if how == "renamed":
        with open_capture(tmp_path / "moved.inspect") as capture:
            assert capture.extent("a:h") == (8, 4) and capture.status == "unfinished"
    if how == "replaced":
        with open_capture(path) as capture:
            assert capture.start.run == "second" and (capture.array("a:h") == 2.0).all()
        other.close()


def test_a_model_that_changes_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(appending, "ROLL_BYTES", 200)
    with Writer("a.inspect", start()) as writer:
        writer.write(CHANNEL)
        writer.write(page())
        writer.flush()
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        writer.write(page(1.0, 8))
        writer.flush()
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.extent("a:h") == (16, 4) and not capture.verify()


CLOSES_ITS_OUTPUT = """
import os, sys, numpy as np
os.close(0); os.close(1); os.close(2)
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart, RunStop
with Writer(sys.argv[1], RunStart(run="r", title="t")) as writer:
    for number in range(3):
        try:
            os.write(number, b"printed by the model")
        except OSError:
            pass
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 4), title="h"))
    writer.write(Page("a:h", 0, (0, 0), np.ones((8, 4), np.float32)))
    writer.flush()
    os.write(1, b"printed by the model"); os.write(2, b"printed by the model")
    writer.write(RunStop("done"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors")
def test_what_a_model_prints_never_lands_in_a_file_of_the_capture(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", CLOSES_ITS_OUTPUT, str(tmp_path / "a.inspect")], timeout=60, check=True)
    assert not any(b"printed" in data for data in contents(tmp_path).values())
    with open_capture(tmp_path / "a.inspect") as capture:
        assert (capture.array("a:h") == 1).all() and not capture.verify() and capture.status == "done"


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


NO_ROOM = """
import resource, signal, sys
from inspector.capture import CaptureError, Writer
from inspector.records import RunStart
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    Writer(sys.argv[1], RunStart(run="r", title="t"))
except CaptureError as problem:
    print("said:", problem)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits")
@pytest.mark.parametrize("room", [0, 4096, 10_000])
def test_a_disk_without_room_for_a_new_capture_is_told_and_nothing_is_left(tmp_path: Path, room: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(tmp_path / "a.inspect"), str(room)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("said:") and len(done.stdout.splitlines()) == 1, done.stdout + done.stderr
    assert not (tmp_path / "a.inspect").exists()


def test_a_run_that_replaces_the_capture_in_between_is_not_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writer is about to take an old capture's place while another does so from beginning to end."""
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


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("leads", ["nowhere", "to a file", "to a folder", "to itself"])
def test_a_link_beside_an_index_that_is_to_be_replaced_is_refused(tmp_path: Path, suffix: str, leads: str) -> None:
    path = capture_at(tmp_path / "a.inspect")
    (tmp_path / "thesis.txt").write_text("precious")
    target = {
        "nowhere": "none.txt",
        "to a file": "thesis.txt",
        "to a folder": ".",
        "to itself": f"a.inspect/{INDEX}{suffix}",
    }
    (path / f"{INDEX}{suffix}").symlink_to(tmp_path / target[leads])
    before = {name: data for name, data in contents(path).items() if not name.endswith(suffix)}
    with pytest.raises(CaptureError, match=suffix):
        Writer(path, start("new"), overwrite=True)
    assert not (tmp_path / "none.txt").exists() and (tmp_path / "thesis.txt").read_text() == "precious"
    assert {name: data for name, data in contents(path).items() if not name.endswith(suffix)} == before


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_named_pipe_beside_an_index_that_is_to_be_replaced_is_refused(tmp_path: Path, suffix: str) -> None:
    path = capture_at(tmp_path / "a.inspect")
    os.mkfifo(path / f"{INDEX}{suffix}")
    code = "import sys\nfrom pathlib import Path\nfrom inspector.capture import check_target\ncheck_target(Path(sys.argv[1]), True)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert "CaptureError" in done.stderr and "named pipe" in done.stderr
    assert (path / "pages-0000.bin").exists()


def test_packing_what_has_no_name_or_speaks_of_no_page_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = capture_at(tmp_path / "a.inspect")
    monkeypatch.chdir(path)
    assert pack(".").name == "a.inspect.zip"
    with pytest.raises(CaptureError, match="no capture at"):
        pack("/")
    with pytest.raises(CaptureError, match="not a file name"):
        pack(path, "a\0")
    index = sqlite3.connect(path / INDEX)
    index.execute("UPDATE pages SET file = 'abc'")
    index.commit()
    index.close()
    with open_capture(pack(path, tmp_path / "b.inspect.zip")) as packed:
        assert packed.damage
