"""A layer that was chosen while a panel was behind others, or before it was made, is the layer that it shows and names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.records import STEP_DOMAIN, Channel, Frame, Labels, Page, RunStart, RunStop

STEPS, UNITS = 12, 3
RANDOM = np.random.default_rng(2)
GATES = {place: RANDOM.random((STEPS, UNITS)).astype(np.float32) for place in ("rnn.l0", "rnn.l1")}
MAPS = {place: np.tril(RANDOM.random((STEPS, STEPS)) + 0.1).astype(np.float32) for place in GATES}
SHARES = np.array([[0.004, 0, 1], [0, 0.996, 0], [0.5, 0.25, 0.0004]])
BY_FEATURE = np.array([[0.1, 0.2, 0.3], [0.7, 0.8, 0.9]])


def channels() -> Iterator[tuple[Channel, Any]]:
    """Gates, saturation, gradients and correlations with features of two layers."""
    for place in GATES:
        yield Channel(name=f"{place}:gate/f", kind="gate", dims=("step", "unit"), shape=(STEPS, UNITS),
                      title="gate f", limits=(0, 1)), GATES[place]  # fmt: skip
        yield Channel(
            name=f"{place}:gate/f/saturation", kind="unit", dims=("statistic", "unit"), shape=SHARES.shape,
            dtype="float64", title="saturation", labels={"statistic": ("left", "right", "graded")},
        ), SHARES  # fmt: skip
        yield Channel(name=f"{place}:gradient/lag_map", kind="map", dims=("step", "source"), shape=(STEPS, STEPS),
                      title="gradient", scale="log"), MAPS[place]  # fmt: skip
        yield Channel(name=f"{place}:gate/f/by_feature", kind="opener", dims=("feature", "unit"),
                      shape=BY_FEATURE.shape, dtype="float64", title="gate f by feature"), BY_FEATURE  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, tuple("abcdefghijkl"), 0, 0))
        for channel, values in channels():
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        made = Stage(capture, (900, 600))
        yield made
        made.close()


def shown(panel: Any) -> dict[str, str]:
    return dict(panel.labelled_readout())


@pytest.mark.parametrize("made", [True, False], ids=["behind others", "made later"])
def test_gates_and_maps_are_of_the_layer_that_was_chosen_meanwhile(stage: Stage, made: bool) -> None:
    if made:
        panels: list[Any] = [stage.panel("gates"), stage.panel("lens")]
        for panel in panels:
            panel.say_on_screen(False)
        stage.cursor.move(place="rnn.l1", step=7, unit=2)
        for panel in panels:
            panel.say_on_screen(True)
    else:
        stage.panel("openers", place="rnn.l1")
        panels = [stage.panel(key, place="rnn.l1") for key in ("gates", "lens")]
        stage.cursor.move(step=7, unit=2)
    gates, lens = panels
    assert (gates.where.currentText(), lens.where.currentText()) == ("rnn.l1", "rnn.l1")
    assert float(shown(gates)["gate f [7, 2]  rnn.l1"]) == pytest.approx(GATES["rnn.l1"][7, 2], rel=1e-6)
    best = int(np.argmax(MAPS["rnn.l1"][7, :7]))
    told = shown(lens)["[7] from other steps to it: most  rnn.l1"]
    assert told.startswith(f"{best} ") and told.endswith(f"{MAPS['rnn.l1'][7, best]:.4g}")
    lens.where.setCurrentText("rnn.l0")  # its own choice stays while the cursor's place does
    lens.say_on_screen(False)
    stage.cursor.move(step=8)
    lens.say_on_screen(True)
    assert lens.where.currentText() == "rnn.l0"


def test_a_small_share_of_saturation_does_not_read_as_none(stage: Stage) -> None:
    panel: Any = stage.panel("gates")
    told = []
    for unit in range(UNITS):
        stage.cursor.move(step=0, unit=unit)
        told.append(shown(panel)["gate f: left / right / graded saturation  rnn.l0"])
    assert told == ["0.004 / 0 / 0.5", "0 / 0.996 / 0.25", "1 / 0 / 0.0004"]


def test_a_correlation_without_its_sign_opens_nothing(stage: Stage) -> None:
    panel: Any = stage.panel("openers")
    stage.cursor.move(step=0, unit=1)
    told = shown(panel)
    assert told["gate f by feature, moves it most  rnn.l0"] == "'1': 0.8"
    assert not any("opens" in name for name in told)
    panel.units.setCurrentIndex(1)
    assert shown(panel)["gate f by feature, opens it most  rnn.l0"].startswith("'1': 0.8")


def test_a_gate_that_is_constant_is_opened_by_no_feature(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    panel: Any = stage.panel("openers")
    stage.cursor.move(step=0, unit=1)
    names, _, counts, mean = panel.sorted_table()
    monkeypatch.setattr(panel, "sorted_table", lambda: (names, np.array([0.25, 0.25]), counts, mean))
    told = shown(panel)
    assert told["gate f by feature, the same for all 2  rnn.l0"] == "0.25"
    assert not any("it most" in name or "it least" in name for name in told)
