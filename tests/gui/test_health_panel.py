"""A click on a row of Health goes where panels can follow: to places of the model, and to steps that the cursor counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel, Frame, Page, Place, RunStart, RunStop

PLACES = {
    "rnn.l0": STEP_DOMAIN,
    "input": STEP_DOMAIN,
    "input.sound": STEP_DOMAIN,
    "input.said": ANSWER_DOMAIN,
    "input.picture": "",
    "input.notes": "notes step",
    "input.gru": STEP_DOMAIN,
    "output": ANSWER_DOMAIN,
}


@pytest.fixture
def stage(tmp_path: Path, qtbot: Any) -> Iterator[Stage]:
    path = tmp_path / "a.inspect"
    modules = tuple(Place(name=name, module="M") for name in ("", "rnn", "input.gru"))
    with Writer(path, RunStart(run="r", title="t", places=modules)) as writer:
        writer.write(Frame(index=0))
        for place, domain in PLACES.items():
            if domain:
                channel = Channel(name=f"{place}:value", kind="input", dims=("step",), shape=(9,)).over(domain)
                writer.write(channel)
                writer.write(Page(channel.name, 0, (0,), np.zeros(9, np.float32)))
            counts = Channel(
                name=f"{place}:health/value", kind="health", dims=("count",), shape=(2,), dtype="int64",
                labels={"count": ("nan", "first_bad_step")},
            )  # fmt: skip
            writer.write(counts)
            writer.write(Page(counts.name, 0, (0,), np.array([1, 2])))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        made = Stage(capture, (800, 600))
        yield made
        made.close()


AXES = (STEP_DOMAIN, ANSWER_DOMAIN, "notes step")
BEFORE = (5, 6, 7)


@pytest.mark.parametrize(
    ("row", "place", "expected"),
    [
        ("rnn.l0", "rnn.l0", (2, 6, 7)),
        ("input", "rnn.l9", (2, 6, 7)),
        ("input.sound", "rnn.l9", (2, 6, 7)),
        ("input.said", "rnn.l9", (5, 2, 7)),
        ("input.picture", "rnn.l9", BEFORE),
        ("input.notes", "rnn.l9", (5, 6, 2)),
        ("input.gru", "input.gru", (2, 6, 7)),
        ("output", "rnn.l9", (5, 2, 7)),
    ],
)
def test_where_a_click_goes(stage: Stage, row: str, place: str, expected: tuple[int, ...]) -> None:
    panel = stage.panel("health")
    stage.cursor.set_lengths(dict.fromkeys(AXES, 9))
    stage.cursor.move(place="rnn.l9", steps=dict(zip(AXES, BEFORE, strict=True)))
    panel._clicked([channel.place for channel, _ in panel.rows()].index(row), 0)
    position = stage.cursor.position
    assert (position.place, *(position.at(axis) for axis in AXES)) == (place, *expected)
