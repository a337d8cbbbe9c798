"""Whatever bit of an index is flipped, what is read is what was written, or it is marked as damaged, or refused."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from captures import NAME, START, change, channel, numbers, write
from obstacles import call

from inspector.capture import Capture, CaptureError, Writer, open_capture
from inspector.capture.layout import INDEX
from inspector.records import Axis, Frame, Labels, Page, Refusal, RunStop, Scalar

FLIPS = 700
TIMES = 35
SQUARE = "rnn.l0:jacobian"
FIRST, SECOND = "rnn.l0:h", "rnn.l1:h"


def written(path: Path) -> Path:
    """Two channels of equal shape and one that is square: pages may be swapped, shifted and transposed."""
    with Writer(path, START) as writer:
        writer.write(channel(FIRST))
        writer.write(channel(SECOND))
        writer.write(channel(SQUARE, dtype="float64", dims=("row", "column"), shape=(8, 8), kind="jacobian"))
        writer.write(Labels("step", tuple("abcdefghijklmnopqrstuvwx")))
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=f"frame {frame}"))
            for start in (0, 8, 16):
                writer.write(Page(FIRST, frame, (start, 0), numbers(24)[start : start + 8] + frame))
                writer.write(Page(SECOND, frame, (start, 0), -numbers(24)[start : start + 8] - frame))
            for start in (0, 4):
                square = np.random.default_rng(frame).normal(size=(8, 8))
                writer.write(Page(SQUARE, frame, (start, 0), square[start : start + 4]))
            writer.write(Scalar("loss", frame, 0.25 * frame))
        writer.write(Refusal("rnn.l0:c", "It has none."))
        writer.write(Axis(name="step", title="source step", length=24))
        writer.write(RunStop("done"))
    return path


def said(capture: Capture) -> tuple[object, ...]:
    """The names and words that a capture holds."""
    return (
        capture.channels, capture.frames, capture.scalars, capture.refusals, capture.labels("step"), capture.axes,
        capture.start, capture.stop, capture.status,
    )  # fmt: skip


def read(capture: Capture) -> dict[tuple[str, int], npt.NDArray[np.generic]]:
    """The numbers that a capture holds."""
    return {
        (name, frame.index): capture.array(name, frame.index) for name in capture.channels for frame in capture.frames
    }


@pytest.mark.parametrize("seed", range(FLIPS // TIMES))
def test_a_flipped_bit_of_the_index_is_told(tmp_path: Path, seed: int) -> None:
    path = written(tmp_path / "a.inspect")
    original = (path / INDEX).read_bytes()
    with open_capture(path) as capture:
        words, truth = said(capture), read(capture)
        assert not capture.verify()
    flips = random.Random(seed)
    for _ in range(TIMES):
        data = bytearray(original)
        place = flips.randrange(len(data))
        data[place] ^= 1 << flips.randrange(8)
        (path / INDEX).write_bytes(data)
        started = time.monotonic()
        try:
            with open_capture(path) as capture:
                now = read(capture)
                if not capture.verify():
                    assert said(capture) == words, f"byte {place}"
                    assert now.keys() == truth.keys()
                    assert all(np.array_equal(now[key], truth[key]) for key in truth), f"byte {place}"
        except CaptureError:
            pass
        assert time.monotonic() - started < 5


CHANGES = {
    "shifted": "UPDATE pages SET start = '[4, 0]' WHERE id = 3",
    "transposed": "UPDATE pages SET shape = '[8, 4]' WHERE channel = 3 AND id % 2",
    "swapped with another channel": "UPDATE pages SET channel = 3 - channel WHERE id IN (3, 4)",
    "swapped with another frame": "UPDATE pages SET frame = 1 - frame WHERE id IN (1, 9)",
    "overlapping in the file": "UPDATE pages SET offset = (SELECT offset FROM pages WHERE id = 1), crc = (SELECT crc FROM pages WHERE id = 1) WHERE id = 3",
    "exchanged rows": "UPDATE pages SET id = CASE id WHEN 1 THEN -3 WHEN 3 THEN -1 END WHERE id IN (1, 3)",
    "of frame -1": "UPDATE pages SET frame = -1 WHERE frame = 1 AND channel = 1",
    "of a frame that does not exist": "UPDATE pages SET frame = 7 WHERE frame = 1 AND channel = 1",
    "a changed name": "UPDATE channels SET record = replace(record, 'rnn.l0:h', 'rnn.l9:h')",
    "exchanged names": "UPDATE channels SET id = CASE id WHEN 1 THEN -2 WHEN 2 THEN -1 END WHERE id IN (1, 2)",
    "a changed label": "UPDATE notes SET record = replace(record, '\"d\"', '\"e\"')",
    "a changed number": "UPDATE notes SET record = replace(record, '0.25', '0.75')",
    "a changed frame": "UPDATE frames SET record = replace(record, 'frame 1', 'frame 0')",
    "another way to have ended": "UPDATE run SET record = replace(record, '\"done\"', '\"failed\"')",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_says_something_else_is_damage(tmp_path: Path, what: str) -> None:
    path = written(tmp_path / "a.inspect")
    with open_capture(path) as capture:
        truth = read(capture)
    change(path, CHANGES[what])
    change(path, "UPDATE pages SET id = -id WHERE id < 0")
    change(path, "UPDATE channels SET id = -id WHERE id < 0")
    with open_capture(path) as capture:
        assert capture.damage, what
        assert not {row[2] for row in capture._placed} - {0, 1}
        for key, array in read(capture).items():
            known = ~np.isnan(array)
            place = tuple(slice(n) for n in array.shape)
            np.testing.assert_array_equal(array[known], truth[key][place][known], err_msg=str((what, key)))


@pytest.mark.parametrize(
    ("statement", "said", "anywhere"),
    [
        ("DELETE FROM pages WHERE id = 3", "1 page is missing from the index (number 3).", True),
        ("DELETE FROM pages WHERE id > 12", "4 pages are missing from the index (numbers 13–16).", True),
        ("DELETE FROM pages", "16 pages are missing from the index (numbers 1–16).", True),
        ("DELETE FROM channels WHERE id = 3", "1 channel is missing from the index (number 3).", True),
        ("DELETE FROM frames WHERE id = 2", "1 frame is missing from the index (number 2).", False),
        ("DELETE FROM notes WHERE id = 5", "1 note is missing from the index (number 5).", False),
        ("DELETE FROM run WHERE id = 2", "1 entry about the run is missing from the index (number 2).", False),
        ("DELETE FROM run WHERE id = 4", "How many rows there were is missing from the index.", True),
    ],
)
def test_rows_that_are_missing_are_damage(tmp_path: Path, statement: str, said: str, anywhere: bool) -> None:
    path = written(tmp_path / "a.inspect")
    change(path, statement)
    with open_capture(path) as capture:
        (one,) = (one for one in capture.damage if one.sentence == said)
        assert one.anywhere is anywhere
        assert capture.status == "done" and capture.verify()
        if "pages" in statement:
            assert all(capture.damage_of(name) for name in capture.channels)


def test_the_tail_that_a_killed_run_did_not_write_is_no_damage(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(channel(shape=(100, 4)))
        writer.write(Page(FIRST, 0, (0, 0), numbers(8)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            assert live.status == "running" and not live.verify()


def test_a_gap_of_a_sparse_channel_is_not_what_it_declares_once_a_page_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(channel(fill=0.0))
        for start in (0, 8, 24):
            writer.write(Page(FIRST, 0, (start, 0), np.ones((8, 4), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert (capture.array(FIRST)[16:24] == 0).all() and capture.known(FIRST).all()
    change(path, "DELETE FROM pages WHERE id = 2")
    with open_capture(path) as capture:
        for array in (capture.array(FIRST), capture.block(FIRST)):
            np.testing.assert_array_equal(np.isnan(array[:, 0]), [False] * 8 + [True] * 16 + [False] * 8)
        assert not capture.known(FIRST)[8:24].any()


def test_rows_that_were_added_after_the_end_are_counted_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    with Writer(path, START, again=True) as writer:
        writer.write(channel("rnn.l2:h"))
        writer.write(channel(FIRST))  # described as it is already
        writer.write(Page("rnn.l2:h", 1, (0, 0), numbers()))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert not capture.verify() and len(capture.channels) == 4 and len(capture._numbers) == 4
        assert len(capture.frames) == 2 and capture.array("rnn.l2:h", 1).shape == (40, 4)
    change(path, "DELETE FROM pages WHERE id = 17")
    with open_capture(path) as capture:
        assert capture.damaged == ["1 page is missing from the index (number 17)."]


def test_the_command_line_says_what_is_missing_and_does_not_export_the_rest_unasked(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    change(path, "DELETE FROM pages WHERE id = 6")
    assert "damaged: 1 page is missing from the index (number 6)." in call("list", str(path), cwd=tmp_path, expect=0)
    export = ("export", str(path), "--channel", FIRST, "--to", "x.csv")
    said = call(*export, cwd=tmp_path, expect=1)
    assert "1 page is missing" in said and "--damaged" in said and not (tmp_path / "x.csv").exists()
    call(*export, "--damaged", cwd=tmp_path, expect=0)
    assert (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("pages", range(1, 9))
@pytest.mark.parametrize("whole", [False, True], ids=["index", "index and pages"])
def test_an_index_of_two_captures_is_damaged_or_one_of_them(tmp_path: Path, pages: int, whole: bool) -> None:
    """A copy over another capture that stopped halfway: every row is valid where it was written, but of two runs."""
    mine, other = (
        write(tmp_path / f"{name}.inspect", numbers() + add, run=name) for name, add in (("a", 0), ("b", 500))
    )
    head = (other / INDEX).read_bytes()[: 4096 * pages]
    with (mine / INDEX).open("r+b") as file:
        file.write(head)
    if whole:
        (mine / "pages-0000.bin").write_bytes((other / "pages-0000.bin").read_bytes())
    try:
        with open_capture(mine) as capture:
            capture.verify()
            if not capture.damaged:
                first = capture.array(NAME)[0, 0]
                assert (capture.start.run, first) in (("a", 1.0), ("b", 501.0))
    except CaptureError as problem:
        assert str(problem)
