"""Page files that are full are followed by others, and every page is found again in the file that holds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, appending, open_capture
from inspector.records import Channel, Frame, Page, RunStart, RunStop

ROLL = 1000
START = RunStart(run="r", title="t")


def channel(name: str) -> Channel:
    return Channel(name=name, kind="state", dims=("step", "unit"), shape=(None, 4), dtype="float32")


def rows(name: str, first: int, count: int) -> np.ndarray:
    """Numbers that tell one row, and one channel, from every other."""
    values = 1000 * ord(name[-1]) + 10.0 * np.arange(first, first + count)[:, None] + np.arange(4)
    return values.astype("float32")


def write(folder: Path, names: str, again: bool = False) -> None:
    with Writer(folder, START, again=again) as writer:
        if not again:
            writer.write(Frame(index=0))
        for name in names:
            writer.write(channel(f"a:{name}"))
        for first, count in ((0, 5), (5, 30), (35, 100), (135, 1)):  # 80, 480, 1600 and 16 bytes
            for name in names:
                writer.write(Page(f"a:{name}", 0, (first, 0), rows(name, first, count)))
        writer.write(RunStop("done"))


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "ROLL_BYTES", ROLL)


def test_every_page_is_read_from_the_file_that_holds_it(tmp_path: Path) -> None:
    write(tmp_path / "a.inspect", "xyz")
    files = sorted((tmp_path / "a.inspect").glob("pages-*.bin"))
    assert len(files) >= 6
    assert [file.name for file in files] == [f"pages-{n:04}.bin" for n in range(len(files))]
    assert all(0 < file.stat().st_size <= max(ROLL, 1600) for file in files), "a page is never cut in two"
    with open_capture(tmp_path / "a.inspect") as capture:
        for name in "xyz":
            np.testing.assert_array_equal(capture.array(f"a:{name}"), rows(name, 0, 136))
        assert not capture.verify() and not capture.damage


def test_a_capture_that_is_added_to_keeps_its_files_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "a.inspect"
    write(folder, "xy")
    before = {file.name: file.read_bytes() for file in folder.glob("pages-*.bin")}
    write(folder, "z", again=True)
    after = {file.name: file.read_bytes() for file in folder.glob("pages-*.bin")}
    assert {name: after[name] for name in before} == before and len(after) > len(before)
    with open_capture(folder) as capture:
        for name in "xyz":
            np.testing.assert_array_equal(capture.array(f"a:{name}"), rows(name, 0, 136))
        assert not capture.verify() and capture.status == "done"
