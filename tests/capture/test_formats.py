"""Captures that earlier releases wrote open with the numbers that they were written with.

`formats/VERSION.inspect.zip` was packed by that release: a run of the sample transducer-brackets with an edit, two frames.
`formats/VERSION.npz` holds what that release itself read back, as "frame|channel".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from captures import NAME, as_format_1, change, numbers, write

from inspector.capture import open_capture

FORMATS = Path(__file__).parent / "formats"
VERSIONS = sorted(path.name.removesuffix(".inspect.zip") for path in FORMATS.glob("*.inspect.zip"))


def test_there_are_captures_of_earlier_releases() -> None:
    assert {"1.0", "2.0"} <= set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_number_is_the_one_that_was_written(version: str) -> None:
    with open_capture(FORMATS / f"{version}.inspect.zip") as capture, np.load(FORMATS / f"{version}.npz") as expected:
        assert [frame.label for frame in capture.frames] == ["nested", "rnn.l0:gate/forget[3]=0@4:8"]
        assert {key.partition("|")[2] for key in expected} == set(capture.channels)
        assert capture._major == int(version.partition(".")[0])
        for key in expected:
            frame, _, name = key.partition("|")
            found = capture.array(name, int(frame))
            assert found.dtype == expected[key].dtype and np.array_equal(found, expected[key], equal_nan=True), key
        assert capture.status == "done" and not capture.damaged
        assert capture.labels("step", 0)[:3] == capture.labels("step", 1)[:3]
        assert capture.start.checkpoint.startswith("/tmp/training/") and not capture.verify()


def test_a_capture_of_format_2_has_a_description_for_each_frame() -> None:
    with open_capture(FORMATS / "2.0.inspect.zip") as capture:
        before, after = (capture.channel("rnn.l0:gate/forget", frame) for frame in (0, 1))
        assert (before.module, after.module) == ("LSTM", "Layer") and before.title != after.title


def test_a_finished_capture_of_format_1_says_which_declared_cells_no_page_brought(tmp_path: Path) -> None:
    """It counts no rows; what its channels declare is all that can be known."""
    for number, (statement, said) in enumerate(
        {
            "DELETE FROM pages WHERE id = 5": f"{NAME}, steps 32–39: no page is there.",
            "DELETE FROM pages": f"{NAME}: none of its pages is there.",
            "DELETE FROM pages WHERE id = 2": f"{NAME}, steps 8–15: no page is there.",
        }.items()
    ):
        path = as_format_1(write(tmp_path / f"{number}.inspect", numbers(), shape=(40, 4)))
        with open_capture(path) as capture:
            assert not capture.verify()
        change(path, statement)
        with open_capture(path) as capture:
            assert said in capture.damaged and capture.damage_of(NAME)


def test_what_format_1_never_declared_or_never_finished_is_no_damage(tmp_path: Path) -> None:
    unknown = as_format_1(write(tmp_path / "a.inspect", numbers()))
    running = as_format_1(write(tmp_path / "b.inspect", numbers(), shape=(80, 4), done=False))
    sparse = as_format_1(write(tmp_path / "c.inspect", numbers(), shape=(80, 4), fill=0.0, skip=(8,)))
    for path in (unknown, running, sparse):
        with open_capture(path) as capture:
            assert not capture.verify(), path


def test_a_page_of_format_1_in_a_frame_that_does_not_exist_is_damage(tmp_path: Path) -> None:
    path = as_format_1(write(tmp_path / "a.inspect", numbers()))
    change(path, "UPDATE pages SET frame = 7 WHERE id = 2")
    with open_capture(path) as capture:
        assert capture.frame_of(NAME) == 0 and capture.damaged == [
            f"{NAME}: page 2 is of frame 7, which does not exist."
        ]
        assert np.isnan(capture.array(NAME)[8:16]).all()
