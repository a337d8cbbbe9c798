"""Where a capture is written: nothing of anybody else's is touched, and an old capture stays until the new one has numbers."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from small_captures import CHANNEL, OTHERS, capture_at, contents, page, start

from inspector.capture import CaptureError, Writer, appending, check_target, open_capture, pack
from inspector.capture.layout import INDEX

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
