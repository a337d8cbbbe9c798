"""Captures, kept runs and packed captures are private to their user, whatever the umask; exports follow the umask."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, appending, export_channel, open_capture, pack
from inspector.capture.private import private_file
from inspector.gui.state.shown import Shown
from inspector.records import Channel, Frame, Page, RunStart, RunStop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of files")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_a_capture_is_private_while_it_is_written_and_afterwards(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "ROLL_BYTES", 100)
    path = tmp_path / "new" / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="a:h", kind="state", dims=("step",), shape=(None,)))
        for n in range(3):
            writer.write(Page("a:h", 0, (32 * n,), np.zeros(32, np.float32)))
        writer.flush()
        with open_capture(path) as capture:
            assert capture.extent("a:h") == (96,)
            during = modes(path)
        writer.write(RunStop("done"))
    assert {"index.sqlite", "index.sqlite-wal", "pages-0000.bin", "pages-0002.bin"} <= set(during)
    assert set(during.values()) == {0o600} == set(modes(path).values()), during
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    packed = pack(path, tmp_path / "b.inspect.zip")
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    with open_capture(packed) as capture:
        assert capture.extent("a:h") == (96,)
        exported = export_channel(capture, "a:h", 0, tmp_path / "h.npy")
    assert stat.S_IMODE(Path(exported).stat().st_mode) == 0o666 & ~umask


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    path.mkdir()
    path.chmod(0o750)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(RunStop("done"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o750 and set(modes(path).values()) == {0o600}


def test_a_link_in_the_place_of_a_file_is_not_written_through(tmp_path: Path) -> None:
    other = tmp_path / "thesis.txt"
    other.write_text("years of work")
    (tmp_path / "b.inspect.zip.part").symlink_to(other)
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(RunStop("done"))
    pack(tmp_path / "a.inspect", tmp_path / "b.inspect.zip")
    assert other.read_text() == "years of work"


def test_kept_runs_are_private(umask: int, tmp_path: Path) -> None:
    runs = tmp_path / "data" / "runs"
    runs.mkdir(parents=True)
    runs.chmod(0o755)
    with Writer(Shown(runs).next_path(), RunStart(run="r", title="t")) as writer:
        writer.write(RunStop("done"))
    assert stat.S_IMODE(runs.stat().st_mode) == 0o700, "also runs of an earlier version"
    assert [stat.S_IMODE(path.stat().st_mode) for path in runs.glob("*.inspect")] == [0o700]


def test_a_fresh_file_is_never_one_that_exists(umask: int, tmp_path: Path) -> None:
    path = tmp_path / "pages"
    for text in (b"first", b"2"):
        with private_file(path) as file:
            file.write(text)
    assert path.read_bytes() == b"2", "what was there is gone"
    with pytest.raises(FileExistsError):
        private_file(path, fresh=True)
    assert path.read_bytes() == b"2"
    with private_file(tmp_path / "other", fresh=True) as file:
        file.write(b"3")
    assert modes(tmp_path) == {"pages": 0o600, "other": 0o600}
