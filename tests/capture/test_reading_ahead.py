"""What a picture needs is read in slices: the numbers are those of one reading, and each slice is a small part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Capture, Writer, open_capture, reader
from inspector.records import Channel, Frame, Page, RunStart, RunStop

PAGES, ROWS, UNITS = 600, 20, 3
STATE = Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(None, UNITS), title="h")
WHOLE = Channel(name="rnn:n", kind="state", dims=("step",), shape=(None,), dtype="int64", title="n")


def write(writer: Writer, first: int, pages: int) -> None:
    random = np.random.default_rng(first)
    for number in range(first, first + pages):
        values = random.normal(size=(ROWS, UNITS)).astype(np.float32)
        values[number % ROWS, 0] = np.nan if number % 97 == 0 else values[number % ROWS, 0]
        writer.write(Page(STATE.name, 0, (number * ROWS, 0), values))
        writer.write(Page(WHOLE.name, 0, (number * ROWS,), np.arange(ROWS) + number * ROWS))
    writer.flush()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[Writer, Path]]:
    with Writer(tmp_path / "a.inspect", RunStart(run="a", title="a")) as writer:
        writer.write(Frame(index=0))
        writer.write(STATE)
        writer.write(WHOLE)
        write(writer, 0, PAGES)
        yield writer, tmp_path / "a.inspect"
        writer.write(RunStop("done"))


def same(one: Capture, other: Capture) -> None:
    for size in (10, 64, 700, 5000):
        for region in ((), (slice(1003, 9001),)):
            pairs = (each.overview(STATE.name, 0, region=region, size=(size, UNITS)) for each in (one, other))
            for ours, theirs in zip(*pairs, strict=True):
                np.testing.assert_array_equal(ours, theirs)
    for name in (STATE.name, WHOLE.name):
        np.testing.assert_array_equal(one.array(name, 0), other.array(name, 0))


def test_what_is_read_in_slices_is_what_is_read_at_once(growing: tuple[Writer, Path]) -> None:
    writer, path = growing
    with open_capture(path) as sliced:
        for first, more in ((PAGES, 0), (PAGES, 40), (PAGES + 40, 1)):
            write(writer, first, more)
            sliced.refresh()
            left, slices = [sliced.unread(STATE.name, 0)], 0
            while not sliced.read_ahead(STATE.name, 0, 0.0):  # no time: one page, or one part of the levels
                left.append(sliced.unread(STATE.name, 0))
                slices += 1
                assert slices < 5 * PAGES
            assert left[0] == (PAGES if more == 0 else more) and sliced.unread(STATE.name, 0) == 0
            assert left == sorted(left, reverse=True) and (more == 1 or slices >= more - 1)
            while not sliced.read_ahead(WHOLE.name, 0, 0.001):
                pass
            with open_capture(path) as plain:
                same(sliced, plain)


def test_a_slice_that_is_left_half_way_leaves_nothing_wrong(growing: tuple[Writer, Path]) -> None:
    _, path = growing
    for slices in (1, 70, PAGES, PAGES + 2):
        with open_capture(path) as sliced, open_capture(path) as plain:
            for _ in range(slices):
                sliced.read_ahead(STATE.name, 0, 0.0)
            np.testing.assert_array_equal(
                sliced.block(STATE.name, 0, (slice(5000, 5100),)), plain.block(STATE.name, 0, (slice(5000, 5100),))
            )
            same(sliced, plain)


def test_what_is_small_or_of_other_axes_has_nothing_to_read_ahead(tmp_path: Path) -> None:
    matrix = Channel(name="rnn:J", kind="jacobian", dims=("step", "to", "from"), shape=(None, 2, 2), title="J")
    with Writer(tmp_path / "b.inspect", RunStart(run="b", title="b")) as writer:
        writer.write(Frame(index=0))
        writer.write(matrix)
        writer.write(STATE)
        for step in range(5):
            writer.write(Page(matrix.name, 0, (step, 0, 0), np.eye(2, dtype=np.float32)[None]))
        writer.write(Page(STATE.name, 0, (0, 0), np.ones((4, UNITS), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "b.inspect") as capture:
        for name in (matrix.name, STATE.name):
            assert capture.unread(name, 0) == 0 and capture.read_ahead(name, 0, 0.0)


def test_a_few_large_pages_are_much_to_read_too_and_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 100,000 steps has 49 pages a gate: 0.13 s of the window's thread, when they were read at once."""
    pages, rows = 12, 2_048
    size = rows * UNITS * 4
    monkeypatch.setattr(reader, "BYTES_AT_A_TIME", 3 * size)
    random = np.random.default_rng(0)
    with Writer(tmp_path / "a.inspect", RunStart(run="a", title="a")) as writer:
        writer.write(Frame(index=0))
        writer.write(STATE)
        for number in range(pages):
            values = random.random((rows, UNITS)).astype(np.float32)
            writer.write(Page(STATE.name, 0, (number * rows, 0), values))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as sliced, open_capture(tmp_path / "a.inspect") as plain:
        assert sliced.unread_bytes(STATE.name, 0) == pages * size
        levels = []
        while not sliced.read_ahead(STATE.name, 0, 0.0):
            levels.append(sliced.unread(STATE.name, 0))
        assert levels.count(pages) >= pages - 1, "first the pages, one each time"
        assert sorted(set(levels[pages - 1 :]) - {pages}, reverse=True) == [9, 6, 3], (
            "then the levels of three each time"
        )
        assert sliced.unread_bytes(STATE.name, 0) == 0
        for size_ in (10, 64, 700):
            pairs = (each.overview(STATE.name, 0, size=(size_, UNITS)) for each in (sliced, plain))
            for ours, theirs in zip(*pairs, strict=True):
                np.testing.assert_array_equal(ours, theirs)
