"""Arrays of a capture are made when they are asked for: the collector need not look at those that nobody looks at."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np

from inspector.capture import Writer, open_capture
from inspector.capture.arrays import MOST_ROWS
from inspector.records import Channel, Frame, Page, RunStart, RunStop

FRAMES = 2_000
ROWS = 3


def written(path: Path) -> Path:
    """Of each frame one array of two pages, every number another; descriptions change half-way."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for frame in range(FRAMES):
            if frame % (FRAMES // 2) == 0:
                described = Channel(
                    name="a:h", kind="state", dims=("step", "unit"), shape=(None, 2), method=f"from {frame} on"
                )
                writer.write(described)
            writer.write(Frame(index=frame, step=frame))
            values = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2) + 10 * frame
            writer.write(Page("a:h", frame, (0, 0), values[:1]))
            writer.write(Page("a:h", frame, (1, 0), values[1:]))
        writer.write(RunStop("done"))
    return path


def test_frames_that_nobody_looks_at_are_few_objects(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    gc.collect()
    before = len(gc.get_objects())
    with open_capture(path) as capture:
        gc.collect()
        more = len(gc.get_objects()) - before
        # a frame, and a list of its two rows: with an array and its pages there were eight more
        assert more < 3 * FRAMES, more / FRAMES
        assert capture.unchecked == FRAMES * ROWS * 2 * 4 and capture.verify() == [] and capture.unchecked == 0
        gc.collect()
        assert len(gc.get_objects()) - before < 3 * FRAMES  # checking makes none


def test_each_is_made_with_its_own_pages_and_description(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect")) as capture:
        assert capture.frame_of("a:h") == FRAMES - 1
        for frame in (FRAMES - 1, 0, FRAMES // 2, FRAMES // 2 - 1):
            values = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2) + 10 * frame
            np.testing.assert_array_equal(capture.array("a:h", frame), values)
            assert capture.channel("a:h", frame).method == f"from {frame // (FRAMES // 2) * (FRAMES // 2)} on"
            assert capture.extent("a:h", frame) == (ROWS, 2)


def test_pages_that_come_later_are_added_to_arrays_that_were_asked_for_and_to_others(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    page = np.ones((2, 2), np.float32)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 2)))
        for frame in range(2):
            writer.write(Frame(index=frame))
            writer.write(Page("a:h", frame, (0, 0), page))
        writer.flush()
        with open_capture(path) as capture:
            assert capture.array("a:h", 0).shape == (2, 2)
            for frame in range(2):
                writer.write(Page("a:h", frame, (2, 0), 2 * page))
            writer.flush()
            assert capture.refresh() == {"a:h"}
            for frame in range(2):
                np.testing.assert_array_equal(capture.array("a:h", frame), np.repeat([[1.0, 1.0], [2.0, 2.0]], 2, 0))


def test_a_damaged_page_of_an_array_that_was_never_asked_for_is_found(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    file = path / "pages-0000.bin"
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    with open_capture(path) as capture:
        while not (news := capture.check(0.01)):
            pass
        assert news == {"a:h"} and len(capture.damage) == 1
        assert not capture.known("a:h", 0)[0].any() and capture.known("a:h", 0)[1:].all()


def test_an_array_of_many_pages_is_made_where_the_capture_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 2)))
        writer.write(Frame(index=0))
        for step in range(MOST_ROWS + 3):
            writer.write(Page("a:h", 0, (step, 0), np.full((1, 2), step, np.float32)))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert capture._arrays.is_made(("a:h", 0))
        np.testing.assert_array_equal(capture.array("a:h"), np.arange(MOST_ROWS + 3.0)[:, None].repeat(2, 1))
