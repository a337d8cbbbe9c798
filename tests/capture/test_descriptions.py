"""How a channel is described may differ from frame to frame; what it is may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import NAME, START, channel

from inspector.capture import CaptureError, Writer, export_channel, open_capture, pack
from inspector.records import Channel, Frame, Page, RunStop

PLAIN = channel(shape=(4, 4), method="exact", limits=(0.0, 1.0))
EDITED = replace(
    PLAIN, method="estimated from 8 directions", title="h, edited", formula="as run", limits=None, scale="diverging",
    labels={"unit": ("a", "b", "c", "d")}, shape=(6, 4),
)  # fmt: skip


def two_frames(path: Path, *descriptions: Channel) -> Path:
    with Writer(path, START) as writer:
        for index, described in enumerate(descriptions):
            writer.write(Frame(index=index))
            writer.write(described)
            writer.write(Page(NAME, index, (0, 0), np.full((described.shape[0] or 4, 4), index, described.dtype)))
        writer.write(RunStop("done"))
    return path


def test_each_frame_has_its_own_description(tmp_path: Path) -> None:
    path = two_frames(tmp_path / "a.inspect", PLAIN, EDITED)
    for where in (path, pack(path)):
        with open_capture(where) as capture:
            assert capture.channel(NAME, 0) == PLAIN
            assert capture.channel(NAME, 1) == capture.channel(NAME) == capture.channels[NAME] == EDITED
            assert capture.extent(NAME, 0) == (4, 4) and capture.extent(NAME, 1) == (6, 4)
            assert capture.channel(NAME, 5) == EDITED  # it has no pages there
            assert not capture.verify()
            with pytest.raises(CaptureError, match="no channel"):
                capture.channel("x:y", 0)


def test_a_description_is_written_once_however_many_frames_share_it(tmp_path: Path) -> None:
    path = two_frames(tmp_path / "a.inspect", PLAIN, EDITED, PLAIN, EDITED, PLAIN)
    with open_capture(path) as capture:
        assert [capture.channel(NAME, frame) for frame in range(5)] == [PLAIN, EDITED, PLAIN, EDITED, PLAIN]
        assert capture.channels[NAME] == PLAIN and len(capture._numbers) == 2


def test_a_reader_that_follows_the_run_sees_the_new_description(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(PLAIN)
        writer.write(Page(NAME, 0, (0, 0), np.ones((4, 4), np.float32)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            writer.write(EDITED)
            writer.write(Page(NAME, 1, (0, 0), np.ones((6, 4), np.float32)))
            writer.flush()
            assert live.refresh() == {NAME}
            assert live.channel(NAME, 0) == PLAIN and live.channel(NAME) == EDITED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "gate"}, "kind 'gate'"),
        ({"dtype": "float64"}, "dtype 'float64'"),
        ({"dims": ("step", "head")}, "dims"),
    ],
)
def test_what_a_channel_is_cannot_change(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(CaptureError, match=f"described with the {said}"):
        two_frames(tmp_path / "a.inspect", PLAIN, replace(PLAIN, **change))
    with open_capture(tmp_path / "a.inspect") as capture:  # what was written before stays
        assert capture.channel(NAME, 0) == PLAIN and not capture.verify()


def test_another_fill_in_the_same_frame_counts_from_then_on(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(replace(PLAIN, fill=0.0))
        writer.write(Page(NAME, 0, (2, 0), np.ones((2, 4), np.float32)))
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as live:
            assert (live.array(NAME)[:2] == 0).all()
            writer.write(replace(PLAIN, fill=5.0))
            writer.write(Page(NAME, 0, (5, 0), np.ones((1, 4), np.float32)))
            writer.flush()
            live.refresh()
            assert live.array(NAME)[:, 0].tolist() == [5, 5, 1, 1, 5, 1]


def test_a_page_of_a_frame_that_nobody_announced_announces_it(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", START) as writer:
        writer.write(PLAIN)
        writer.write(Page(NAME, 3, (0, 0), np.ones((4, 4), np.float32)))
        writer.write(Frame(index=3, label="later"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.frames == (Frame(index=3, label="later"),)
        assert capture.array(NAME, 3).shape == (4, 4) and not capture.verify()


def test_no_page_and_no_frame_has_the_number_of_all_frames() -> None:
    with pytest.raises(ValueError, match="one frame"):
        Page(NAME, -1, (0,), np.ones(1))
    with pytest.raises(ValueError, match="from 0 on"):
        Frame(index=-1)


def test_what_is_exported_is_described_as_in_its_frame(tmp_path: Path) -> None:
    with open_capture(two_frames(tmp_path / "a.inspect", replace(PLAIN, formula="first"), EDITED)) as capture:
        for frame, formula in ((0, "first"), (1, "as run")):
            export_channel(capture, NAME, frame, tmp_path / "x.npz")
            with np.load(tmp_path / "x.npz") as found:
                assert found["about"][2] == formula
