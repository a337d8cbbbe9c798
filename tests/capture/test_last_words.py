"""How a run ended stands in its capture where the disk filled up to the last byte: space is kept free for that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import CaptureError, ResumingWriter, Writer, open_capture
from inspector.capture import writer as module
from inspector.capture.reserve import RESERVED_BYTES, Reserve
from inspector.records import Channel, Log, Page, RunStart, RunStop

START = RunStart(run="r", title="t")
CHANNEL = Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 64))
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts, open descriptors")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB in memory, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> None:
    """To the last byte, as another program does that goes on writing."""
    with (disk / "of another").open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def page(step: int) -> Page:
    return Page("a:h", 0, (step, 0), np.full((8, 64), step, np.float32))


def begun(writer: Any) -> None:
    writer.write(CHANNEL)
    writer.write(page(0))
    writer.flush()


@linux
@pytest.mark.parametrize("what", ["pages", "rows", "both"])
def test_a_run(what: str, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.0)
    writer = Writer(disk / "a.inspect", START)
    begun(writer)
    fill(disk)
    if what != "rows":
        writer.write(page(8))
    if what != "pages":
        for n in range(60):
            writer.write(Log(f"{n} " * 2000))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.flush()
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.write(RunStop("done"))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.close()
    with open_capture(disk / "a.inspect") as capture:  # a reader needs no space there either
        assert capture.status == "failed" and "The disk is full" in capture.stop.message
        assert not capture.damage and not capture.verify()
        np.testing.assert_array_equal(capture.array("a:h"), page(0).array)


@linux
def test_the_end_in_the_same_commit_as_pages_that_are_lost_does_not_say_done(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.0)
    monkeypatch.setattr(module, "FIRST_SECONDS", 1.0)  # both come within it
    writer = Writer(disk / "a.inspect", START)
    begun(writer)
    fill(disk)
    writer.write(page(8))
    writer.write(RunStop("done"))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.close()
    with open_capture(disk / "a.inspect") as capture:
        assert capture.status == "failed" and len(capture.array("a:h")) == 8


@linux
def test_a_watched_training(disk: Path) -> None:
    said: list[str] = []
    writer = ResumingWriter(disk / "a.inspect", START, overwrite=False, say=said.append)
    begun(writer)
    fill(disk)
    for step in range(8, 80, 8):
        writer.write(page(step))
        writer.flush()
    writer.write(RunStop("done"))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.close()
    with open_capture(disk / "a.inspect") as capture:
        assert capture.status == "failed" and "The disk is full" in capture.stop.message
        assert not capture.damage and not capture.verify() and len(capture.array("a:h")) == 8


@linux
def test_quantities_added_to_a_run_that_was_done_leave_it_done(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.0)
    with Writer(disk / "a.inspect", START) as writer:
        begun(writer)
        writer.write(RunStop("done"))
    more = Writer(disk / "a.inspect", START, again=True)
    fill(disk)
    more.write(page(8))
    with pytest.raises(CaptureError, match="The disk is full"):
        more.close()
    with open_capture(disk / "a.inspect") as capture:
        assert capture.status == "done" and len(capture.array("a:h")) == 8


@linux
def test_space_is_kept_without_a_name_and_given(disk: Path) -> None:
    def free() -> int:
        return os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize

    before = free()
    kept = Reserve(disk)
    assert before - free() >= RESERVED_BYTES and not list(disk.iterdir())
    kept.give()
    kept.give()
    assert free() == before
    fill(disk)
    Reserve(disk).give()  # there is none to keep


@linux
def test_a_descriptor_that_became_another_files_is_left_alone(tmp_path: Path) -> None:
    """A model that closes what it did not open, and opens a file of its own, which gets the number."""
    kept = Reserve(tmp_path)
    number = kept._descriptor
    os.close(number)
    (tmp_path / "thesis").write_text("precious")
    own = os.open(tmp_path / "thesis", os.O_RDWR)
    os.dup2(own, number)
    kept.give()
    assert (tmp_path / "thesis").read_text() == "precious" and os.read(number, 8) == b"precious"
    os.close(number)
    if own != number:
        os.close(own)
