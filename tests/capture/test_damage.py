"""What is damaged is told with its place, never drawn or written as a number, and never takes anything else along."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, channel, flip, numbers, place_of, write

from inspector.capture import Difference, Holes, Writer, open_capture, pack, summary
from inspector.capture.layout import INDEX, PAGE_BYTES
from inspector.records import DTYPES, Channel, Frame, Page, RunStop

WHOLE_NUMBERS = [dtype for dtype in DTYPES if not dtype.startswith("float")]


def test_damage_says_which_channel_frame_and_cells(tmp_path: Path) -> None:
    flip(write(tmp_path / "a.inspect", numbers()), 2)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.damage == ()  # nobody has looked yet
        capture.verify()
        (one,) = capture.damage
        assert (one.channel, one.frame, one.region) == (NAME, 0, ((8, 16), (0, 4)))
        assert one.sentence == f"{NAME}, steps 8–15: page 2 in pages-0000.bin has changed since it was written."
        assert capture.damaged == [one.sentence] == capture.verify()
        assert summary(capture.damage) == f"1 damaged page: {one.sentence}"
        assert capture.holes(NAME) == Holes((), (((8, 16), (0, 4)),))


def test_a_page_is_found_damaged_by_whoever_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    flip(path, 2)
    readers = {
        "array": lambda c: c.array(NAME),
        "block": lambda c: c.block(NAME, region=(slice(9, 10),)),
        "overview": lambda c: c.overview(NAME),
        "known": lambda c: c.known(NAME),
        "check": lambda c: c.check(10.0),
    }
    for what, read in readers.items():
        with open_capture(path) as capture:
            before = capture.revision(NAME)
            read(capture)
            assert len(capture.damage) == 1, what
            assert capture.revision(NAME) > before
            assert capture.check(1.0) == ({NAME} if what != "check" else frozenset())
            assert capture.check(1.0) == frozenset()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("harmed", [True, False])
def test_what_is_not_known_is_masked_or_nan_and_never_a_number(tmp_path: Path, dtype: str, harmed: bool) -> None:
    """Damaged, or never written: the same for a reader of numbers."""
    values = numbers(24, 4, "float64").astype(dtype)
    path = write(tmp_path / "a.inspect", values, skip=() if harmed else (8,))
    if harmed:
        flip(path, 2, at=0)
    gone = np.zeros((24, 4), bool)
    gone[8:16] = True
    with open_capture(path) as capture:
        for array in (capture.array(NAME), capture.block(NAME), capture.array(NAME)):
            if dtype.startswith("float"):
                assert np.isnan(array[gone]).all() and not np.ma.isMaskedArray(array)
            else:
                np.testing.assert_array_equal(np.ma.getmaskarray(array), gone)
                bare = np.asarray(array)[gone]
                assert dtype == "bool" or (bare != 0).all()
            np.testing.assert_array_equal(np.asarray(array)[~gone], values[~gone])
            assert array.dtype == values.dtype
        row = capture.block(NAME, region=(slice(7, 9), slice(1, 3)))
        np.testing.assert_array_equal(
            np.isnan(row) if dtype.startswith("float") else np.ma.getmaskarray(row), [[False] * 2, [True] * 2]
        )
        np.testing.assert_array_equal(capture.known(NAME), ~gone)
        np.testing.assert_array_equal(capture.known(NAME, region=(slice(6, 10),)), ~gone[6:10])
        low, high = capture.overview(NAME, size=(24, 4))
        for part in (low, high):
            assert part.dtype.kind == "f"
            np.testing.assert_array_equal(np.isnan(part), gone)
            np.testing.assert_array_equal(part[~gone], values[~gone])


@pytest.mark.parametrize("dtype", WHOLE_NUMBERS)
def test_whole_numbers_that_are_all_known_are_plain_arrays(tmp_path: Path, dtype: str) -> None:
    values = numbers(24, 4, "float64").astype(dtype)
    with open_capture(write(tmp_path / "a.inspect", values)) as capture:
        for array in (capture.array(NAME), capture.block(NAME), capture.block(NAME, region=(slice(3, 20),))):
            assert type(array) is np.ndarray and not array.flags.writeable
        assert capture.known(NAME).all() and not capture.holes(NAME)


def test_cells_under_a_damaged_page_are_not_what_the_channel_declares_for_gaps(tmp_path: Path) -> None:
    for dtype in ("float32", "int64"):
        path = tmp_path / f"{dtype}.inspect"
        with Writer(path, START) as writer:
            writer.write(channel(dtype=dtype, fill=0.0))
            for start in (0, 8, 24):
                writer.write(Page(NAME, 0, (start, 0), np.ones((8, 4), dtype)))
            writer.write(RunStop("done"))
        flip(path, 2)
        with open_capture(path) as capture:
            array, known = capture.array(NAME), capture.known(NAME)
            assert (np.asarray(array[16:24]) == 0).all() and known[16:24].all()  # the declared gap
            assert not known[8:16].any() and known[:8].all()
            lost = np.isnan(array[8:16]) if dtype == "float32" else np.ma.getmaskarray(array)[8:16]
            assert lost.all()
            assert capture.holes(NAME) == Holes((), (((8, 16), (0, 4)),))


def test_a_damaged_page_hides_what_an_earlier_one_said_and_a_later_one_covers_it(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(channel())
        for value, (first, stop) in enumerate(((0, 10), (4, 8), (6, 7)), 1):
            writer.write(Page(NAME, 0, (first, 0), np.full((stop - first, 4), value, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 2)
    with open_capture(path) as capture:
        for array in (capture.array(NAME), capture.block(NAME)):
            np.testing.assert_array_equal(array[:, 0], [1, 1, 1, 1, np.nan, np.nan, 3, np.nan, 1, 1])
        assert capture.holes(NAME).damaged == (((4, 6), (0, 4)), ((7, 8), (0, 4)))


def test_a_growing_run_has_gaps_and_no_damage(tmp_path: Path) -> None:
    """A run may be written from its end: what has not come is told apart from what is lost."""
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (16, 0), np.ones((8, 4), np.float32)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            assert live.holes(NAME) == Holes(missing=(((0, 16), (0, 4)),))
            writer.write(Page(NAME, 0, (8, 0), np.ones((8, 4), np.float32)))
            writer.flush()
            live.refresh()
            assert live.holes(NAME) == Holes(missing=(((0, 8), (0, 4)),)) and np.isnan(live.array(NAME)[:8]).all()
            writer.write(Page(NAME, 0, (0, 0), np.ones((8, 4), np.float32)))
            writer.flush()
            live.refresh()
            assert not live.holes(NAME) and live.known(NAME).all() and not live.verify()


def test_gaps_of_pages_that_divide_every_axis(tmp_path: Path) -> None:
    """As maps of attention are written: some heads and some queries at a time."""
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Channel(name=NAME, kind="attention", dims=("head", "query", "key"), shape=(4, 6, 6)))
        for head in (0, 2):
            for query in (0, 3):
                if (head, query) != (0, 3):
                    writer.write(Page(NAME, 0, (head, query, 0), np.full((2, 3, 6), 0.5, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 2)
    with open_capture(path) as capture:
        array, known = capture.array(NAME), capture.known(NAME)
        np.testing.assert_array_equal(np.isnan(array), ~known)
        assert capture.holes(NAME) == Holes((((0, 2), (3, 6), (0, 6)),), (((2, 4), (0, 3), (0, 6)),))
        assert capture.damage[0].sentence.startswith(f"{NAME}, heads 2–3, queries 0–2: page 2")


@pytest.mark.parametrize("size", [PAGE_BYTES // 2, PAGE_BYTES + 5000, 5 * PAGE_BYTES])
@pytest.mark.parametrize("how", ["array", "block", "cell", "column", "overview"])
def test_every_page_is_checked_once_however_much_was_written_at_once(tmp_path: Path, size: int, how: str) -> None:
    """A flipped exponent bit makes 1.7e38 of 0.5; the reading that would show it gives NaN instead."""
    steps = size // (4 * 64)
    path = write(tmp_path / "a.inspect", np.full((steps, 64), 0.5, np.float32), rows=steps)
    index = sqlite3.connect(path / INDEX)
    last, start = index.execute("SELECT id, start FROM pages ORDER BY id DESC LIMIT 1").fetchone()
    index.close()
    first = json.loads(start)[0]
    file, offset, _ = place_of(path, last)
    with file.open("r+b") as opened:
        opened.seek(offset + (steps - 3 - first) * 64 * 4 + 3)
        opened.write(b"\x7f")
    region = {"cell": (slice(steps - 3, steps - 2), slice(0, 1)), "column": (slice(None), slice(0, 1))}
    with open_capture(path) as capture:
        if how == "overview":
            shown = capture.overview(NAME, size=(500, 64))[1]
        else:
            shown = capture.array(NAME) if how == "array" else capture.block(NAME, region=region.get(how, ()))
        assert len(capture.damage) == 1 and np.isnan(shown[-1]).all()
        assert capture.known(NAME)[:first].all() and not capture.known(NAME)[first:].any()


def test_a_long_channel_with_a_damaged_page_is_right_at_every_level(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(size=(20_000, 3)).astype(np.float32)
    path = write(tmp_path / "a.inspect", values, rows=500)
    flip(path, 11)
    lost = slice(5_000, 5_500)
    with open_capture(path) as capture:
        for cells in (20_000, 3_000, 700, 160):
            low, high = capture.overview(NAME, size=(cells, 3))
            width = -(-20_000 // len(low))
            for i in range(len(low)):
                part = values[i * width : (i + 1) * width]
                touched = i * width < lost.stop and (i + 1) * width > lost.start
                assert np.isnan(low[i]).all() == touched
                if not touched:
                    np.testing.assert_array_equal((low[i], high[i]), (part.min(0), part.max(0)))


def test_a_difference_is_lost_where_either_run_is(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(channel())
        for frame in (0, 1):
            writer.write(Frame(index=frame))
            for start in (0, 8, 16):
                writer.write(Page(NAME, frame, (start, 0), np.full((8, 4), frame + 1, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 1)
    flip(path, 6)
    with open_capture(path) as capture:
        both = Difference(capture, 0, 1)
        np.testing.assert_array_equal(np.isnan(both.array(NAME)[:, 0]), [True] * 8 + [False] * 8 + [True] * 8)
        assert both.holes(NAME).damaged == (((0, 8), (0, 4)), ((16, 24), (0, 4)))
        assert [one.frame for one in both.damage_of(NAME)] == [0, 1]
        assert "frame 1, steps 16–23" in both.damage_of(NAME)[1].sentence
        np.testing.assert_array_equal(both.known(NAME)[:, 0], [False] * 8 + [True] * 8 + [False] * 8)


def test_a_packed_capture_shows_the_damage_of_the_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers(), rows=4)
    flip(path, 2)
    file, offset, _ = place_of(path, 9)
    os.truncate(file, offset + 3)
    (path / "pages-of-my-thesis.bin").write_bytes(b"precious")
    with open_capture(path) as folder, open_capture(pack(path)) as packed:
        assert folder.verify() and folder.verify() == packed.verify()
        np.testing.assert_array_equal(folder.array(NAME), packed.array(NAME))
        np.testing.assert_array_equal(np.isnan(packed.array(NAME)[:, 0]), np.isin(np.arange(40) // 4, (1, 8, 9)))


def test_a_page_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    (path / "pages-0000.bin").unlink()
    with open_capture(path) as capture:
        assert len(capture.verify()) == 5
        assert capture.damaged[0].endswith("page 1 cannot be read from pages-0000.bin: No such file or directory.")


def test_checking_goes_on_in_pieces_and_never_reads_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture.files import GuardedFile

    steps = (3 << 20) // (4 * 64)
    path = write(tmp_path / "a.inspect", np.ones((steps, 64), np.float32), rows=steps // 2)
    flip(path, 2)
    read: list[int] = []
    real = GuardedFile.read_into
    monkeypatch.setattr(
        GuardedFile, "read_into", lambda self, at, room: (read.append(len(room)), real(self, at, room))[1]
    )
    with open_capture(path) as capture:
        rounds = 0
        while capture.unchecked:
            assert not capture.damage
            capture.check(0.0)
            rounds += 1
        assert rounds >= 12 and sum(read) == 3 << 20 and len(capture.damage) == 1
        capture.check(1.0)
        capture.verify()
        assert sum(read) == 3 << 20


def test_only_so_many_bytes_are_verified_where_that_is_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())  # pages of 128 bytes
    flip(path, 5)
    with open_capture(path) as capture:
        assert capture.verify(300) == [] and capture.unchecked == 3 * 128
        assert len(capture.verify()) == 1 and capture.unchecked == 0


def test_a_gap_in_numbers_that_declare_an_impossible_fill_is_unknown(tmp_path: Path) -> None:
    for number, (dtype, fill) in enumerate((("uint8", -1.0), ("uint8", float("nan")), ("int16", 1e9), ("bool", 7.0))):
        path = tmp_path / f"{number}.inspect"
        with Writer(path, START) as writer:
            writer.write(channel(dtype=dtype, fill=fill))
            writer.write(Page(NAME, 0, (2, 0), np.ones((1, 4), dtype)))
        with open_capture(path) as capture:
            np.testing.assert_array_equal(np.ma.getmaskarray(capture.array(NAME))[:, 0], [True, True, False])
