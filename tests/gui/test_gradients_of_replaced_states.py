"""Where an edit replaced a state there is no gradient at it: said with the reason, and not as a number that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Capture, Difference, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.pictures.gradient_by_step import find, read
from inspector.records import Channel, Frame, Page, RunStart, RunStop
from inspector.records.run import EDITS

STEPS, FROM = 12, 5
EDIT = f"rnn.l0:h=0@{FROM}:"
SIGNALS = {"rnn.l0:gradient/state_norm": "h", "rnn.l0:gradient/cell_norm": "c", "rnn.l1:gradient/state_norm": "h"}
OVERFLOWN = "rnn.l1:gradient/state_norm"
"""Of another place, and not finite at one step: that is no matter of the edit."""


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for frame, meta in enumerate(({}, {EDITS: [EDIT]})):
            writer.write(Frame(index=frame, label=str(frame), meta=meta))
            for name, part in SIGNALS.items():
                values = np.linspace(1, 2, STEPS)
                if frame and name == "rnn.l0:gradient/state_norm":
                    values[FROM:] = np.nan
                if frame and name == OVERFLOWN:
                    values[8] = np.nan
                writer.write(
                    Channel(name=name, kind="gradient", dims=("step",), shape=(STEPS,), dtype="float64", unit="nat",
                            title=f"‖∂L/∂{part}ₜ‖", scale="log", compare="ratio")
                )  # fmt: skip
                writer.write(Page(name, frame, (0,), values))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as opened:
        yield opened


def told(view: Any, frame: int) -> str:
    return read(view, frame, find(view, frame)).sentence


def test_the_overview_gives_the_reason_and_keeps_what_overflowed(capture: Capture) -> None:
    said = told(capture, 1)
    assert said.endswith(f"; not finite at 1 step; none at {STEPS - FROM} steps whose state was replaced ({EDIT})")
    sketch = read(capture, 1, find(capture, 1))
    assert np.isfinite(sketch.lines[0].y).all() and sketch.lines[0].x.max() == FROM - 1
    assert "none" not in told(capture, 0) and "not finite" not in told(capture, 0)


@pytest.mark.parametrize("compared", [False, True])
def test_the_panel_gives_the_reason(capture: Capture, compared: bool) -> None:
    stage = Stage(Difference(capture, 0, 1) if compared else capture, (800, 500))
    panel = stage.panel("gradients")
    panel.where.setCurrentText("all layers")
    stage.cursor.move(step=8) if compared else stage.cursor.move(step=8, frame=1)
    panel.redraw()
    numbers = dict(panel.readout(stage.cursor.position))
    told = {place: [text for what, text in numbers.items() if what.endswith(place)] for place in ("rnn.l0", "rnn.l1")}
    assert told["rnn.l0"][0] == "none, state replaced" and "NaN" in told["rnn.l1"][0]
    assert float(told["rnn.l0"][1].split()[0]) > 0
    assert panel.curves.plot.titleLabel.lines[1].startswith(f"none where an edit replaced the state: {EDIT}")
    stage.close()


def test_without_an_edit_nothing_is_remarked(capture: Capture) -> None:
    stage = Stage(capture, (800, 500))
    panel = stage.panel("gradients")
    stage.cursor.move(step=8, frame=0)
    panel.redraw()
    assert len(panel.curves.plot.titleLabel.lines) == 1
    assert all("none" not in text for _, text in panel.readout(stage.cursor.position))
    stage.close()
