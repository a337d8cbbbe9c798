"""Crashes, full disks, damaged and hostile captures: nothing committed is lost, nothing wrong is shown as right."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from captures import seal

from inspector.capture import CaptureError, NewerVersionError, Writer, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.records import Channel, Page, RunStart, RunStop

START = RunStart(run="r", title="a run")
CHANNEL = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 64), title="h")
WRITE_FOR_EVER = """
import sys, numpy as np
from inspector.capture import Writer
from inspector.records import Channel, Page, RunStart
writer = Writer(sys.argv[1], RunStart(run="r", title="t"))
writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 64), title="h"))
step = 0
while True:
    writer.write(Page("a:h", 0, (step, 0), np.full((8, 64), step, np.float32)))
    step += 8
    if step % 64 == 0:
        writer.flush()
        print(step, flush=True)
"""
LIMITED = """
import resource, signal, sys, numpy as np
from inspector.capture import CaptureError, Writer
from inspector.records import Channel, Page, RunStart
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = Writer(sys.argv[1], RunStart(run="r", title="t"))
writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 64), title="h"))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    for step in range(0, 100_000, 64):
        writer.write(Page("a:h", 0, (step, 0), np.full((64, 64), step, np.float32)))
        writer.flush()
        print(step + 64, flush=True)
except CaptureError as problem:
    print("said:", problem)
"""


def a_capture(path: Path, rows: int = 40) -> np.ndarray:
    values = np.arange(rows * 64, dtype=np.float32).reshape(rows, 64)
    with Writer(path, START) as writer:
        writer.write(CHANNEL)
        for start in range(0, rows, 8):
            writer.write(Page("a:h", 0, (start, 0), values[start : start + 8]))
        writer.write(RunStop("done"))
    return values


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("trial", range(6))
def test_killing_the_writer_loses_nothing_acknowledged(tmp_path: Path, trial: int) -> None:
    path = tmp_path / "a.inspect"
    process = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = int(process.stdout.readline())
    with open_capture(path) as live:
        assert live.status == "running"
        time.sleep(random.Random(trial).uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged = max([acknowledged, *(int(word) for word in rest.split())])
        live.refresh()
        assert live.status == "unfinished"
    with open_capture(path) as capture:
        array = capture.array("a:h")
        assert len(array) >= acknowledged
        np.testing.assert_array_equal(array, np.repeat(np.arange(0, len(array), 8), 8)[:, None] * np.ones(64))
        assert not capture.damaged


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits")
def test_a_full_disk_keeps_what_was_captured_and_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "a.inspect")], capture_output=True, text=True, timeout=60
    )
    assert "said:" in done.stdout and "readable" in done.stdout, done.stdout + done.stderr
    acknowledged = max(int(word) for word in done.stdout.partition("said:")[0].split())
    with open_capture(tmp_path / "a.inspect") as capture:
        assert len(capture.array("a:h")) >= acknowledged
        assert capture.status == "unfinished"


@pytest.mark.parametrize("nth", range(1, 8))
def test_no_space_at_the_nth_write(tmp_path: Path, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture import appending as module

    calls = 0
    real = module.PageAppender.place

    def place(self: module.PageAppender, page: Page) -> module.Position:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(28, "No space left on device")
        return real(self, page)

    monkeypatch.setattr(module.PageAppender, "place", place)
    writer = Writer(tmp_path / "a.inspect", START)
    writer.write(CHANNEL)
    written = 0
    with pytest.raises(CaptureError, match="disk is full"):
        for step in range(0, 80, 8):
            writer.write(Page("a:h", 0, (step, 0), np.full((8, 64), step, np.float32)))
            writer.flush()
            written += 8
    with pytest.raises(CaptureError):
        writer.close()
    assert written == 8 * (nth - 1)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert len(capture.array("a:h")) == written


def test_a_writer_whose_threads_cannot_be_made_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that put something else in the place of threading.Thread: nothing is acknowledged that is not there."""
    writer = Writer(tmp_path / "a.inspect", START)
    monkeypatch.setattr("inspector.capture.groups.threading.Thread", None)
    writer.write(CHANNEL)
    for act in (writer.flush, writer.flush, lambda: writer.write(CHANNEL), writer.close):
        with pytest.raises(CaptureError, match=r"a\.inspect could not be written: .* not callable"):
            act()
    monkeypatch.undo()
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "unfinished" and not capture.damage


@pytest.mark.parametrize("keep", [0, 1, 100, 5000])
def test_a_cut_page_file_shows_the_rest_and_counts_the_damage(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.inspect"
    values = a_capture(path)
    file = path / "pages-0000.bin"
    os.truncate(file, keep)
    with open_capture(path) as capture:
        array = capture.array("a:h")
        whole = keep // (8 * 64 * 4) * 8
        np.testing.assert_array_equal(array[:whole], values[:whole])
        assert np.isnan(array[whole:]).all()
        assert capture.damaged and "lies beyond" in capture.damaged[0]


def test_a_flipped_bit_in_a_page_is_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    values = a_capture(path)
    file = path / "pages-0000.bin"
    data = bytearray(file.read_bytes())
    data[3000] ^= 16
    file.write_bytes(data)
    with open_capture(path) as capture:
        array = capture.array("a:h")
        np.testing.assert_array_equal(array[:8], values[:8])
        assert np.isnan(array[8:16]).all() and "changed since" in capture.damaged[0]
        np.testing.assert_array_equal(array[16:], values[16:])


@pytest.mark.parametrize("size", [0, 1, 50, 99, 2000, 5000])
def test_a_cut_index_is_refused_in_one_sentence(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.inspect"
    a_capture(path)
    os.truncate(path / INDEX, size)
    with pytest.raises(CaptureError) as told:
        open_capture(path)
    assert "\n" not in str(told.value)


def test_mutated_indexes_never_crash_or_lie(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    values = a_capture(path)
    original = (path / INDEX).read_bytes()
    random_ = random.Random(5)
    for _ in range(150):
        data = bytearray(original)
        for _ in range(random_.randint(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        (path / INDEX).write_bytes(data)
        started = time.monotonic()
        try:
            with open_capture(path) as capture:
                for name, channel in capture.channels.items():
                    if channel.dims == ("step", "unit") and channel.dtype == "float32" and name == "a:h":
                        array = capture.array(name)
                        assert array.shape == values.shape or capture.damaged
                        rows, units = map(min, array.shape, values.shape)
                        known = array[:rows, :units]
                        assert ((known == values[:rows, :units]) | np.isnan(known)).all()
        except (CaptureError, MemoryError):
            pass
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("PRAGMA user_version = 3000", "format 3.0"),
        ("PRAGMA user_version = 1000", "damaged"),
        ("PRAGMA user_version = 7", "damaged"),
        ("PRAGMA application_id = 7", "another program"),
        (
            "CREATE VIEW channels2 AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c",
            "tables",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END", "tables"),
        ("DROP TABLE pages", "tables"),
        ("DELETE FROM run", "does not say how its run began"),
    ],
)
def test_foreign_and_hostile_schemas_are_refused(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "a.inspect"
    a_capture(path)
    with sqlite3.connect(path / INDEX) as index:
        index.execute(statement)
    index.close()
    with pytest.raises(CaptureError, match=said):
        open_capture(path)


def test_a_newer_major_version_names_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    a_capture(path)
    with sqlite3.connect(path / INDEX) as index:
        index.execute("PRAGMA user_version = 3004")
    index.close()
    with pytest.raises(NewerVersionError, match=r"3\.4.*2\.0"):
        open_capture(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("offset", -1), ("offset", 2**61), ("nbytes", 10**15), ("nbytes", "many"), ("shape", "[1, 2"), ("shape", "[-1, 64]"),
        ("shape", "[4611686018427387904, 4]"), ("start", "[0]"), ("start", "[0, 1e9]"), ("file", 999), ("crc", 1.5),
        ("channel", 77), ("shape", "[" * 150), ("frame", "x"), ("start", f"[{2**40 - 1}, 0]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sealed", [False, True])
def test_hostile_page_rows_become_damage(tmp_path: Path, column: str, value: object, sealed: bool) -> None:
    """Changed by accident, or by a program that makes the checksums fit."""
    path = tmp_path / "a.inspect"
    values = a_capture(path)
    with sqlite3.connect(path / INDEX) as index:
        index.execute(f"UPDATE pages SET {column} = ? WHERE id = 2", (value,))
    index.close()
    if sealed:
        seal(path)
    with open_capture(path) as capture:
        array = capture.array("a:h")
        assert capture.damaged
        np.testing.assert_array_equal(array[:8], values[:8])
        np.testing.assert_array_equal(array[16:40], values[16:40])


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "O"}, {"dtype": "f4,O"}, {"dims": ["step"]}, {"name": "no colon"}, {"shape": [-1, 4]}, {"kind": "<b>"},
        {"record": "os.system"}, {"limits": ["a", "b"]}, {"shape": "[" * 100_000},
    ],
)  # fmt: skip
def test_hostile_channels_are_left_out(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "a.inspect"
    a_capture(path)
    with sqlite3.connect(path / INDEX) as index:
        (text,) = index.execute("SELECT record FROM channels").fetchone()
        index.execute("UPDATE channels SET record = ?", (json.dumps({**json.loads(text), **change}),))
    index.close()
    seal(path)
    with open_capture(path) as capture:
        assert not capture.channels and capture.damaged


def test_not_a_capture(tmp_path: Path) -> None:
    (tmp_path / "x.inspect").mkdir()
    (tmp_path / "y.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (tmp_path / "z.txt").write_text("hello")
    for path in ("x.inspect", "y.zip", "z.txt", "nowhere"):
        with pytest.raises(CaptureError):
            open_capture(tmp_path / path)


def test_a_packed_capture_with_compressed_or_foreign_members_is_refused(tmp_path: Path) -> None:
    a_capture(tmp_path / "a.inspect")
    good = pack(tmp_path / "a.inspect")
    for kind, extra in (("deflated", None), ("foreign", "evil.py")):
        bad = tmp_path / f"{kind}.inspect.zip"
        method = zipfile.ZIP_DEFLATED if extra is None else zipfile.ZIP_STORED
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(bad, "w", method) as target:
            for member in source.namelist():
                target.writestr(member, source.read(member))
            if extra:
                target.writestr(extra, "import os")
        with pytest.raises(CaptureError):
            open_capture(bad)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_opens(tmp_path: Path) -> None:
    values = a_capture(tmp_path / "a.inspect")
    (tmp_path / "a.inspect").chmod(0o500)
    try:
        with open_capture(tmp_path / "a.inspect") as capture:
            np.testing.assert_array_equal(capture.array("a:h"), values)
    finally:
        (tmp_path / "a.inspect").chmod(0o700)


def test_a_folder_renamed_while_it_is_read(tmp_path: Path) -> None:
    values = a_capture(tmp_path / "a.inspect")
    with open_capture(tmp_path / "a.inspect") as capture:
        capture.array("a:h")
        (tmp_path / "a.inspect").rename(tmp_path / "b.inspect")
        np.testing.assert_array_equal(capture.array("a:h"), values)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB in memory, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts")
@pytest.mark.parametrize("taken", [*range(250, 600, 14), 404, 412])
def test_a_disk_that_fills_is_named_and_leaves_a_whole_capture_that_nobody_writes(
    small_disk: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.capture.writer.ROOM_SECONDS", 0.0)  # nobody makes room
    (small_disk / "fill").write_bytes(bytes(taken * 1000))
    path = small_disk / "a.inspect"
    said = ""
    try:
        with Writer(path, START) as writer:
            for n in range(40):
                name = f"a:h{n}"
                writer.write(replace(CHANNEL, name=name, formula="f" * 900))
                writer.write(Page(name, 0, (0, 0), np.full((20, 64), n, np.float32)))
                if n % 8 == 7:
                    writer.flush()
            writer.write(RunStop("done"))
    except CaptureError as problem:
        said = str(problem)
    assert not said or "disk is full" in said or "disk I/O" in said
    (small_disk / "fill").unlink()
    if not said or (path / "index.sqlite").exists():
        try:
            with open_capture(path) as capture:
                assert not capture.verify() and capture.status == ("failed" if said else "done")
                assert not said or "disk is full" in capture.stop.message or "disk I/O" in capture.stop.message
                for name in capture.channels:
                    values = capture.array(name)
                    assert not values.size or (values == int(name[3:])).all()
                assert said or len(capture.channels) == 40
        except CaptureError as problem:
            assert said and "empty" in str(problem)
    with Writer(path, START, overwrite=True) as again:
        again.write(RunStop("done"))
    with open_capture(path) as capture:
        assert capture.status == "done" and not capture.damaged


def test_an_index_that_lost_its_beginning_is_damaged_and_not_empty(tmp_path: Path) -> None:
    a_capture(tmp_path / "a.inspect")
    with contextlib.closing(sqlite3.connect(tmp_path / "a.inspect" / "index.sqlite")) as index, index:
        index.execute("DELETE FROM run")
    with pytest.raises(CaptureError, match="damaged: it does not say how its run began"):
        open_capture(tmp_path / "a.inspect")
