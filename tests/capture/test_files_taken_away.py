"""Files of a capture that another program removes, replaces, cuts or overwrites while they are written: a writer says so
at the next commit instead of acknowledging what would be gone, and touches no file that took the place of its own."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from small_captures import CHANNEL, page, start

from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture.layout import INDEX

PAGES = "pages-0000.bin"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files that are open can be removed")


def begun(path: Path) -> Writer:
    """Steps 0 to 7 are acknowledged."""
    writer = Writer(path, start())
    writer.write(CHANNEL)
    writer.write(page())
    writer.flush()
    return writer


def told(writer: Writer, name: str) -> None:
    """At the next commit, and at the end; in one line."""
    writer.write(page(1.0, 8))
    for act in (writer.flush, writer.close):
        with pytest.raises(CaptureError, match=f"{name} was .* by another program while the run was writing") as said:
            act()
        assert "\n" not in str(said.value)


def acknowledged_is_there(path: Path) -> None:
    with open_capture(path) as capture:
        assert capture.status == "unfinished" and not capture.verify()
        np.testing.assert_array_equal(capture.array("a:h"), page().array)


def test_pages_that_are_removed(tmp_path: Path) -> None:
    writer = begun(tmp_path / "a.inspect")
    (tmp_path / "a.inspect" / PAGES).unlink()
    told(writer, PAGES)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.verify() and capture.extent("a:h") == (8, 4)  # the acknowledged ones are damaged, and said to be


def test_pages_in_whose_place_another_file_is(tmp_path: Path) -> None:
    """A copy that a program made for a backup and moved there: it is not cut to what the writer thinks it has."""
    writer = begun(tmp_path / "a.inspect")
    file = tmp_path / "a.inspect" / PAGES
    content = file.read_bytes() + b"more of the user's"
    (tmp_path / "copy").write_bytes(content)
    (tmp_path / "copy").replace(file)
    told(writer, PAGES)
    assert file.read_bytes() == content
    acknowledged_is_there(tmp_path / "a.inspect")


def test_a_log_that_is_removed(tmp_path: Path) -> None:
    writer = begun(tmp_path / "a.inspect")
    (tmp_path / "a.inspect" / f"{INDEX}-wal").unlink()
    told(writer, f"{INDEX}-wal")
    acknowledged_is_there(tmp_path / "a.inspect")


KILLED = """
import os, sys
from pathlib import Path
from small_captures import CHANNEL, page, start
from inspector.capture import CaptureError, Writer
path = Path(sys.argv[1])
writer = Writer(path, start())
writer.write(CHANNEL)
writer.write(page())
writer.flush()
(path / "index.sqlite-wal").unlink()
writer.write(page(1.0, 8))
try:
    writer.flush()
    print("acknowledged")
except CaptureError:
    print("told")
sys.stdout.flush()
os._exit(9)
"""


def test_a_log_that_is_removed_before_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, env=around)
    assert done.stdout == "told\n", done.stderr
    acknowledged_is_there(path)


@pytest.mark.parametrize("how", ["cut to nothing", "cut", "overwritten"])
def test_an_index_that_is_changed(how: str, tmp_path: Path) -> None:
    writer = begun(tmp_path / "a.inspect")
    index = tmp_path / "a.inspect" / INDEX
    if how == "overwritten":
        with index.open("r+b") as file:
            file.write(b"of another program " * 300)
    else:
        os.truncate(index, 0 if how == "cut to nothing" else index.stat().st_size - 4096)
    told(writer, INDEX)


def test_a_link_to_the_folder_in_its_place_is_the_same(tmp_path: Path) -> None:
    writer = begun(tmp_path / "a.inspect")
    (tmp_path / "a.inspect").rename(tmp_path / "elsewhere")
    (tmp_path / "a.inspect").symlink_to(tmp_path / "elsewhere")
    writer.write(page(1.0, 8))
    writer.close()
    with open_capture(tmp_path / "elsewhere") as capture:
        assert capture.extent("a:h") == (16, 4) and not capture.verify()


def test_a_process_that_may_open_no_more_files_goes_on(tmp_path: Path) -> None:
    """A data loader that leaks descriptors: what cannot be looked at is not said to be wrong."""
    writer = begun(tmp_path / "a.inspect")
    with open_capture(tmp_path / "a.inspect") as capture:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 8, hard))
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    held.append(os.open(os.devnull, os.O_RDONLY))
            with pytest.raises(CaptureError, match=r"cannot be read: Too many open files") as said:
                open_capture(tmp_path / "a.inspect")
            os.close(held.pop())  # SQLite and synchronising take one for a moment
            writer.write(page(1.0, 8))
            writer.flush()
        finally:
            for one in held:
                os.close(one)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "damaged" not in str(said.value)
        capture.refresh()
        assert capture.extent("a:h") == (16, 4)
    writer.close()


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture that is written is read from a private copy of its index: where none can be made, it is not damaged."""
    writer = begun(tmp_path / "a.inspect")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(CaptureError, match=r"cannot be read: No such file or directory \(.*none.*\)\.") as said:
        open_capture(tmp_path / "a.inspect")
    assert "damaged" not in str(said.value)
    monkeypatch.undo()
    writer.close()


ODD = [
    b"new\nline", b"\xff\xfe no text", "é\u202ertl".encode(), b"100%25#?&x=1", b"-rf", b" spaces ", b"q'uote\"", b"a" * 230,
    b"CON", b"file:", b"~", b"$HOME `ls`", b"a;b", b"[x]*", b"\\back",
]  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes")
@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_folders(name: bytes, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name + b".inspect"))
    begun(path).close()
    with Writer(path, start("second"), overwrite=True, whole=True) as writer:
        writer.write(CHANNEL)
        writer.write(page(2.0))
    with open_capture(path) as capture:
        assert capture.start.run == "second" and (capture.array("a:h") == 2.0).all() and not capture.verify()
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    shutil.rmtree(path)
