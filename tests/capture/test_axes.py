"""Axis records in a capture: written, followed, and answered for where nobody wrote one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from captures import NAME, START, change, channel

from inspector.capture import Difference, Writer, open_capture, pack
from inspector.records import Axis, Frame, Page, RunStop

EVERY = Axis(name="answer step", title="target step", length=7)
FIRST, SECOND = (Axis(name="patch", layout="grid", grid=(2, 3 + i), frame=i) for i in range(2))


def written(path: Path) -> Path:
    with Writer(path, START) as writer:
        writer.write(channel())
        writer.write(EVERY)
        for index, axis in enumerate((FIRST, SECOND)):
            writer.write(Frame(index=index))
            writer.write(axis)
            writer.write(Page(NAME, index, (0, 0), np.ones((2, 4), np.float32)))
        writer.write(RunStop("done"))
    return path


def test_axes_are_read_back_from_a_folder_and_from_one_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    for where in (path, pack(path)):
        with open_capture(where) as capture:
            assert capture.axes == {"answer step": EVERY, "patch": SECOND}
            assert capture.axis("patch", 0) == FIRST and capture.axis("patch", 1) == capture.axis("patch") == SECOND
            assert capture.axis("answer step", 1) == EVERY  # holds for every frame
            assert not capture.verify()


def test_an_axis_that_nobody_described_is_a_line(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect")) as capture:
        assert capture.axis("step") == capture.axis("step", 1) == Axis(name="step", title="step", layout="line")
        assert capture.axis("patch", 7) == Axis(name="patch")  # a frame of which nothing is known
        assert "step" not in capture.axes


def test_what_is_said_later_of_an_axis_counts(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(Axis(name="iteration"))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            assert live.axis("iteration").length is None
            writer.write(Axis(name="iteration", length=500))
            writer.flush()
            live.refresh()
            assert live.axis("iteration").length == 500


def test_a_difference_has_the_axes_of_the_second_frame(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect")) as capture:
        for first, second, wanted in ((0, 1, SECOND), (1, 0, FIRST)):
            both = Difference(capture, first, second)
            assert both.axis("patch") == wanted and both.axes == {"answer step": EVERY, "patch": wanted}
            assert both.axis("step") == Axis(name="step")


def test_an_axis_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    change(path, "UPDATE notes SET record = replace(record, '[2, 3]', '[2, 0]')")
    with open_capture(path) as capture:
        assert len(capture.damaged) == 1 and capture.axis("patch", 1) == SECOND
