"""Dots on what is saturated in the maps of Gates: gates beyond 0.1 and 0.9, a candidate beyond ±0.97, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.gates import Gates
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.theme import DARK, LIGHT, Theme
from inspector.records import Channel, Frame, Page, RunStart, RunStop

STEPS, UNITS = 8, 3
RANDOM = np.random.default_rng(5)
SHAPE = (STEPS, UNITS)
VALUES: dict[str, npt.NDArray[Any]] = {
    "gate/forget": RANDOM.choice([0.02, 0.09, 0.3, 0.89, 0.91, 0.95], SHAPE).astype(np.float32),
    "candidate": RANDOM.choice([-0.99, -0.95, 0.05, 0.95, 0.99], SHAPE).astype(np.float32),
    "activation/write": RANDOM.choice([-0.99, 0.02, 0.95, 3.0], SHAPE).astype(np.float32),
    "gate/input": RANDOM.choice([0.11, 0.5, 0.89], SHAPE).astype(np.float32),
}
BEYOND = {
    "gate/forget": [[v < 0.1 or v > 0.9 for v in row] for row in VALUES["gate/forget"].tolist()],
    "candidate": [[abs(v) > 0.97 for v in row] for row in VALUES["candidate"].tolist()],
    "activation/write": [[False] * UNITS] * STEPS,
    "gate/input": [[False] * UNITS] * STEPS,
}
COUNTED = ("gate/forget", "candidate", "gate/input")
MARKED = ("gate/forget", "candidate")


@pytest.fixture
def capture(tmp_path: Path) -> Any:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for signal, values in VALUES.items():
            writer.write(
                Channel(name=f"rnn:{signal}", kind="gate", dims=("step", "unit"), shape=SHAPE, title=signal,
                        scale="sequential", limits=(-1, 3) if signal == "activation/write" else (-1, 1))
            )  # fmt: skip
            writer.write(Page(f"rnn:{signal}", 0, (0, 0), values))
        for signal in COUNTED:
            low, high = (0.1, 0.9) if signal.startswith("gate/") else (-0.97, 0.97)
            left, right = (VALUES[signal] < low).mean(0), (VALUES[signal] > high).mean(0)
            table, name = np.stack((left, right, 1 - left - right)), f"rnn:{signal}/saturation"
            writer.write(
                Channel(name=name, kind="unit", dims=("statistic", "unit"), shape=table.shape, dtype="float64",
                        labels={"statistic": ("left", "right", "graded")})
            )  # fmt: skip
            writer.write(Page(name, 0, (0, 0), table))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as opened:
        yield opened


def shown(capture: Capture, theme: Theme = LIGHT) -> tuple[Stage, Gates]:
    stage = Stage(capture, (900, 700), theme)
    panel = stage.panel("gates")
    assert isinstance(panel, Gates)
    return stage, panel


def row_of(panel: Gates, signal: str) -> MapRow:
    return panel.rows[[channel.signal for channel in panel.shown()].index(signal)]


def dots(panel: Gates, signal: str) -> list[list[bool]]:
    """Whether a cell has more than its one colour, without its edges."""
    image: QImage = panel.figure.grab().toImage()
    box = row_of(panel, signal).plot.vb

    def marked(step: int, unit: int) -> bool:
        first, last = (panel.figure.mapFromScene(box.mapViewToScene(QPointF(step + d, unit + d))) for d in (-0.4, 0.4))
        seen = {image.pixel(x, y) for x in range(first.x(), last.x()) for y in range(first.y(), last.y())}
        return len(seen) > 1

    return [[marked(step, unit) for unit in range(UNITS)] for step in range(STEPS)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_dots_are_on_saturated_cells_of_gates_and_candidates(capture: Capture, theme: Theme) -> None:
    stage, panel = shown(capture, theme)
    for signal, beyond in BEYOND.items():
        assert dots(panel, signal) == beyond, signal
        key = "saturated" in [text for _, text in row_of(panel, signal).bar._notes()]
        assert key == (signal in MARKED), "where nothing is marked nothing is explained"
    stage.close()


def test_share_and_count_are_told_of_each_gate(capture: Capture) -> None:
    stage, panel = shown(capture)
    for signal in VALUES:
        share = 100 * np.mean(BEYOND[signal])
        told = f"{signal}; {share:.3g} % saturated" if signal in COUNTED else signal
        assert row_of(panel, signal).plot.titleLabel.lines == (told,)
    for step in range(STEPS):
        for unit in (None, 0):
            stage.cursor.move(step=step, unit=unit, place="rnn")
            rows = dict(panel.labelled_readout())
            for signal in VALUES:
                count = rows.get(f"{signal} saturated [{step}]")
                assert count == (f"{sum(BEYOND[signal][step])} of {UNITS} units" if signal in COUNTED else None)
            assert unit is not None or len(rows) == len(COUNTED), "without a unit nothing is told of one"
    stage.close()


def test_they_can_be_switched_off(capture: Capture) -> None:
    stage, panel = shown(capture)
    assert panel.saturated.switch.isEnabled() and panel.saturated.switch in panel.controls.parentWidget().children()
    panel.saturated.switch.setChecked(False)
    for signal in VALUES:
        assert not np.any(dots(panel, signal))
        assert "saturated" not in [text for _, text in row_of(panel, signal).bar._notes()]
    assert "% saturated" in row_of(panel, "candidate").plot.titleLabel.lines[0], (
        "a number stays where dots are not wanted"
    )
    stage.close()
