"""Captures that earlier releases wrote open with the numbers that they were written with.

`formats/VERSION.inspect.zip` was packed by that release: a run of the sample transducer-brackets with an edit, two frames.
`formats/VERSION.npz` holds what that release itself read back, as "frame|channel".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import open_capture

FORMATS = Path(__file__).parent / "formats"
VERSIONS = sorted(path.name.removesuffix(".inspect.zip") for path in FORMATS.glob("*.inspect.zip"))


def test_there_are_captures_of_earlier_releases() -> None:
    assert "1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_every_number_is_the_one_that_was_written(version: str) -> None:
    with open_capture(FORMATS / f"{version}.inspect.zip") as capture, np.load(FORMATS / f"{version}.npz") as expected:
        assert [frame.label for frame in capture.frames] == ["nested", "rnn.l0:gate/forget[3]=0@4:8"]
        assert {key.partition("|")[2] for key in expected} == set(capture.channels)
        for key in expected:
            frame, _, name = key.partition("|")
            found = capture.array(name, int(frame))
            assert found.dtype == expected[key].dtype and np.array_equal(found, expected[key], equal_nan=True), key
        assert capture.status == "done" and not capture.damaged
        assert capture.labels("step", 0)[:3] == capture.labels("step", 1)[:3]
