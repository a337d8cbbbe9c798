"""Pages of any size, as captures of format 1 have them: checked once as a whole, read in bounded parts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, as_format_1, flip, numbers, place_of, write

from inspector.capture import Writer, open_capture, pages, splitting
from inspector.capture.files import GuardedFile
from inspector.capture.layout import PAGE_BYTES
from inspector.records import Channel, Page


@pytest.fixture(autouse=True)
def unsplit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the writer of format 1: a page is as large as what was written at once."""
    monkeypatch.setattr(splitting, "PAGE_BYTES", 1 << 40)


@pytest.mark.parametrize("how", ["array", "block", "cell", "column", "overview"])
def test_a_large_page_is_checked_once(tmp_path: Path, how: str) -> None:
    """A flipped exponent bit makes 1.7e38 of 0.5; the reading that would show it gives NaN instead."""
    steps = 2 * PAGE_BYTES // (4 * 64)
    path = as_format_1(write(tmp_path / "a.inspect", np.full((steps, 64), 0.5, np.float32), rows=steps))
    file, offset, _ = place_of(path, 1)
    with file.open("r+b") as opened:
        opened.seek(offset + (steps - 3) * 64 * 4 + 3)
        opened.write(b"\x7f")
    region = {"cell": (slice(steps - 3, steps - 2), slice(0, 1)), "column": (slice(None), slice(0, 1))}
    with open_capture(path) as capture:
        if how == "overview":
            shown = capture.overview(NAME, size=(500, 64))[1]
        else:
            shown = capture.array(NAME) if how == "array" else capture.block(NAME, region=region.get(how, ()))
        assert np.isnan(shown).all() and len(capture.damage) == 1


def test_parts_of_a_large_page_are_read_without_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 4 * PAGE_BYTES // (4 * 64)
    values = np.random.default_rng(0).normal(size=(steps, 64)).astype(np.float32)
    path = as_format_1(write(tmp_path / "a.inspect", values, rows=steps))
    read: list[int] = []
    real = GuardedFile.read_into

    def counted(self: GuardedFile, offset: int, room: memoryview) -> bool:
        read.append(len(room))
        return real(self, offset, room)

    monkeypatch.setattr(GuardedFile, "read_into", counted)
    with open_capture(path) as capture:
        for region in (
            (slice(7, 9),),
            (slice(5, 6), slice(3, 4)),
            (slice(100, 3000), slice(3, 60)),
            (slice(0, steps), slice(9, 10)),
        ):
            np.testing.assert_array_equal(capture.block(NAME, region=region), values[region])
        assert max(read) <= 256 << 10  # bounded buffers
        read.clear()
        capture.block(NAME, region=(slice(7, 9),))
        assert not read  # kept
        capture.block(NAME, region=(slice(70, 90),))
        assert sum(read) == 20 * 64 * 4  # checked before: the rows alone


@pytest.mark.parametrize("shape", [(3, 700, 500), (600, 2, 900), (1, 1, 1), (5, 1, 70_000)])
def test_any_part_of_a_page_equals_the_same_part_of_the_whole(
    tmp_path: Path, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 0)
    values = np.random.default_rng(1).normal(size=shape)
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Channel(name=NAME, kind="map", dims=("head", "query", "key"), shape=shape, dtype="float64"))
        writer.write(Page(NAME, 0, (0, 0, 0), values))
    random = np.random.default_rng(2)
    with open_capture(as_format_1(tmp_path / "a.inspect")) as capture:
        for _ in range(40):
            edges = [sorted(random.integers(0, n + 1, 2)) for n in shape]
            region = tuple(slice(int(a), int(b)) for a, b in edges)
            np.testing.assert_array_equal(capture.block(NAME, region=region), values[region])


def test_a_large_page_is_checked_again_before_a_part_of_an_overwritten_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 0)
    path = as_format_1(write(tmp_path / "a.inspect", numbers(), rows=40))
    with open_capture(path) as capture:
        assert capture.block(NAME, region=(slice(0, 1),))[0, 0] == 1
        flip(path, 1)
        os.utime(path / "pages-0000.bin")
        assert np.isnan(capture.block(NAME, region=(slice(30, 31),))).all() and capture.damage


def test_format_2_refuses_a_page_that_is_too_large(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", np.ones((PAGE_BYTES // 256 + 1, 64), np.float32), rows=1 << 40)
    with open_capture(path) as capture:
        assert not capture.known(NAME).any()
        assert "8,000,256 bytes, more than a page may have" in capture.damaged[0]
