"""A pipe, a socket, a device or a folder in the place of any file of a capture is refused at once, in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, numbers, write
from obstacles import SAID, call, put

from inspector.capture import CaptureError, open_capture, pack
from inspector.capture.layout import INDEX
from inspector.capture.regular import NotRegularError, open_regular, regular_stat

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no named pipes among files"),
    pytest.mark.timeout(120),
]
OF_THE_INDEX = (INDEX, f"{INDEX}-wal", f"{INDEX}-shm", f"{INDEX}-journal")
IN_A_PROCESS = """
import sys
from inspector.capture import CaptureError, open_capture, pack
from inspector.gui.state.session import Session
for path in sys.argv[1:]:
    for what in (open_capture, pack, Session(None, None).open_capture):
        try:
            what(path)
            print("opened")
        except CaptureError as problem:
            print(problem)
"""


def tried(*paths: Path) -> list[str]:
    """What opening, packing and showing say of each, in a process that can be ended if it hangs."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, *map(str, paths)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", OF_THE_INDEX)
def test_in_the_place_of_a_file_of_the_index(tmp_path: Path, name: str) -> None:
    paths = {kind: write(tmp_path / f"{kind}.inspect", numbers()) for kind in SAID}
    for kind, path in paths.items():
        put(kind, path / name)
    told = tried(*paths.values())
    for number, kind in enumerate(SAID):
        three = told[3 * number : 3 * number + 3]
        assert len(three) == 3 and all(SAID[kind] in line and name in line for line in three), three


def test_in_the_place_of_what_a_link_to_an_index_leads_to(tmp_path: Path) -> None:
    paths = {kind: write(tmp_path / f"{kind}.inspect", numbers()) for kind in SAID}
    for kind, path in paths.items():
        (path / INDEX).rename(tmp_path / f"elsewhere-{kind}")
        (path / INDEX).symlink_to(tmp_path / f"elsewhere-{kind}")
        with open_capture(path) as capture:
            np.testing.assert_array_equal(capture.array(NAME), numbers())
        put(kind, tmp_path / f"elsewhere-{kind}-wal")
    told = tried(*paths.values())
    assert [SAID[kind] in told[3 * number] for number, kind in enumerate(SAID)] == [True] * len(SAID)


@pytest.mark.parametrize("kind", SAID)
def test_in_the_place_of_a_page_file(tmp_path: Path, kind: str) -> None:
    """The rest of the capture is shown; its pages are damaged, and it is not packed."""
    path = write(tmp_path / "a.inspect", numbers())
    put(kind, path / "pages-0000.bin")
    told = tried(path)
    linked = (path / "pages-0000.bin").is_symlink()
    said = "is a link to another file, so it is not packed" if linked else f"cannot be packed: {SAID[kind]}"
    assert told[0] == told[2] == "opened" and "pages-0000.bin" in told[1] and said in told[1]
    listed = call("list", str(path), cwd=tmp_path, expect=0)
    assert f"page 1 cannot be read from pages-0000.bin: {SAID[kind]}" in listed
    said = call("export", str(path), "--channel", NAME, "--to", "x.npy", cwd=tmp_path, expect=1)
    assert "pages-0000.bin" in said and not (tmp_path / "x.npy").exists()


def test_in_the_place_of_a_packed_capture(tmp_path: Path) -> None:
    for kind in SAID:
        put(kind, tmp_path / f"{kind}.inspect.zip")
    told = tried(*(tmp_path / f"{kind}.inspect.zip" for kind in SAID))
    for number, kind in enumerate(SAID):
        opened, packed, shown = told[3 * number : 3 * number + 3]
        wanted = "holds no index.sqlite" if kind == "folder" else SAID[kind]
        assert wanted in opened and opened == shown
        assert (wanted if kind == "folder" else "no capture") in packed


@pytest.mark.parametrize("command", [["list"], ["export", "--channel", "x", "--to", "x.npy"], ["pack"]])
def test_a_command_on_a_pipe_ends(tmp_path: Path, command: list[str]) -> None:
    put("pipe", tmp_path / "a.inspect.zip")
    told = call(command[0], "a.inspect.zip", *command[1:], cwd=tmp_path, expect=2)
    assert SAID["pipe"] in told or "no capture" in told


@pytest.mark.parametrize("kind", SAID)
def test_opening_is_refused_before_and_after(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    put(kind, path)
    for how in (regular_stat, open_regular):
        with pytest.raises(OSError, match=SAID[kind].replace("it is ", "")):
            how(path)
    if kind == "pipe":  # put there between the two looks: opening does not wait for somebody who writes
        monkeypatch.setattr("inspector.capture.regular.regular_stat", lambda _: None)
        with pytest.raises(NotRegularError):
            open_regular(path)


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\r\nb")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"a\r\nb"
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "y")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
def test_files_that_may_not_be_read_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / INDEX).chmod(0)
    with pytest.raises(CaptureError, match="Permission denied"):
        open_capture(path)


@pytest.mark.parametrize("name", ["a" * 3000, "a\0b"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(CaptureError):
        open_capture(tmp_path / name)


def test_a_page_file_dated_before_zip_archives_is_packed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    os.utime(path / "pages-0000.bin", (0, 0))
    with open_capture(pack(path)) as packed:
        np.testing.assert_array_equal(packed.array(NAME), numbers())


def test_a_capture_that_is_left_in_the_middle_of_a_change_is_copied_with_its_journal(tmp_path: Path) -> None:
    """On a medium that cannot be written SQLite works on a copy; without the journal half a change would be shown."""
    import sqlite3

    path = write(tmp_path / "a.inspect", numbers())
    index = sqlite3.connect(path / INDEX, isolation_level=None)
    index.execute("PRAGMA cache_size=2")
    index.execute("BEGIN")
    index.execute(
        "INSERT INTO notes (kind, record, checksum) WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000) SELECT 'x', hex(zeroblob(200)), 0 FROM c"
    )
    copy = tmp_path / "copy.inspect"
    copy.mkdir()
    for file in path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    index.close()
    assert (copy / f"{INDEX}-journal").exists()
    with open_capture(copy) as left:
        assert len(left.labels("step")) == 40 and not left.verify()
