"""Token: rows and columns of what relates steps, for the token under the cursor and for one that is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels import lens
from inspector.gui.state.pins import pins_of
from inspector.records import STEP_DOMAIN, Channel, Frame, Labels, Page, RunStart, RunStop

STEPS = 30
RANDOM = np.random.default_rng(0)
MAY = np.tril(np.ones((STEPS, STEPS), bool))
WEIGHTS = np.where(MAY, RANDOM.random((2, STEPS, STEPS)), -np.inf).astype(np.float32)
MAP = np.where(MAY, RANDOM.random((STEPS, STEPS)) + 0.1, 0).astype(np.float32)
GATE = RANDOM.random((STEPS, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lens") / "a.inspect"
    with Writer(made, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, tuple("<b>" if n == 4 else chr(65 + n) for n in range(STEPS)), 0, 0))
        for name, kind, dims, values, log in (
            ("a:attention", "attention", ("head", "query", "key"), WEIGHTS, False),
            ("l:map", "map", ("step", "source"), MAP, True),
            ("l:gate/forget", "gate", ("step", "unit"), GATE, False),
        ):
            writer.write(Channel(name=name, kind=kind, dims=dims, shape=values.shape, title=name,
                                 scale="log" if log else "sequential"))  # fmt: skip
            writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    return made


def y_of(panel: Any, row: int, line: int) -> np.ndarray:
    return np.asarray(panel.lines[row][line].getData()[1])


def test_rows_and_columns_of_two_tokens_and_gates_are_drawn(path: Path) -> None:
    with open_capture(path) as capture:
        stage = Stage(capture, (1000, 700))
        panel: Any = stage.panel("lens")
        assert "of 0 'A'" in panel.plots[0].titleLabel.lines[0]
        stage.cursor.move(step=20, head=1, place="l")
        pins_of(stage.cursor).add(stage.cursor.position)
        stage.cursor.move(step=4)
        for line, values in (
            (0, WEIGHTS[1, 4, :]),
            (1, WEIGHTS[1, :, 4]),
            (4, WEIGHTS[1, 20, :]),
            (5, WEIGHTS[1, :, 20]),
        ):
            np.testing.assert_allclose(y_of(panel, 0, line), np.where(np.isfinite(values), values, np.nan), rtol=1e-6)
        with np.errstate(divide="ignore"):
            influence = np.where(MAP > 0, np.log10(MAP), np.nan)
        np.testing.assert_allclose(y_of(panel, 1, 1), influence[:, 4], rtol=1e-5)
        np.testing.assert_allclose(y_of(panel, 1, 4), influence[20, :], rtol=1e-5)
        np.testing.assert_allclose(y_of(panel, 3, 0), GATE.mean(1), rtol=1e-6)
        assert "4 '<b>' and, dashed, 20" in panel.plots[0].titleLabel.lines[0]
        best = int(np.argmax(WEIGHTS[1, 4, :5]))
        assert dict(panel.readout(stage.cursor.position))["[4] it attends to, head 1: most"].startswith(f"{best} ")
        told = dict(panel.readout(stage.cursor.position))
        assert float(told["l:gate/forget [4], mean of units  l"]) == pytest.approx(GATE[4].mean(), rel=1e-3)
        source, reader = int(np.argmax(MAP[4, :4])), 5 + int(np.argmax(MAP[5:, 4]))
        assert told["[4] from other steps to it: most"].startswith(f"{source} "), "another token than itself"
        assert told["[4] from it to other steps: most"].startswith(f"{reader} ")
        stage.cursor.move(step=0)
        told = dict(panel.readout(stage.cursor.position))
        assert told["[0] from other steps to it: most"] == "nothing", "no step with 0 is the one that gives most"
        stage.cursor.move(step=4, unit=2)
        told = dict(panel.readout(stage.cursor.position))
        assert float(told["l:gate/forget [4, 2]  l"]) == pytest.approx(GATE[4, 2], rel=1e-3)
        np.testing.assert_allclose(y_of(panel, 3, 0), GATE[:, 2], rtol=1e-6)
        assert panel.state == "figure"
        stage.close()


def test_columns_of_a_map_that_is_too_large_are_not_read_and_that_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lens, "MOST_OF_MAP", STEPS * STEPS - 1)
    with open_capture(path) as capture:
        stage = Stage(capture, (1000, 700))
        panel: Any = stage.panel("lens")
        stage.cursor.move(step=7)
        assert len(panel.drawn_curves[0]) == 1 and "too large" in " ".join(panel.plots[0].titleLabel.lines)
        stage.close()


def test_weights_in_half_precision_are_told_with_the_digits_that_they_have(tmp_path: Path) -> None:
    made, weights = tmp_path / "a.inspect", np.full((1, 4, 4), 0.004955, np.float16)
    weights[0, np.arange(4), np.arange(4)] = 0.98513
    with Writer(made, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, tuple("abcd"), 0, 0))
        writer.write(Channel(name="a:attention", kind="attention", dims=("head", "query", "key"), shape=weights.shape,
                             title="attention", dtype="float16"))  # fmt: skip
        writer.write(Page("a:attention", 0, (0, 0, 0), weights))
        writer.write(RunStop("done"))
    with open_capture(made) as capture:
        stage = Stage(capture, (800, 500))
        panel: Any = stage.panel("lens")
        stage.cursor.move(step=2)
        told = dict(panel.readout(stage.cursor.position))["[2] it attends to, head 0: most"]
        assert float(weights[0, 2, 2]) == 0.9853515625, "the fourth digit is that of the rounding"
        assert told == "2 'c': 0.985"
        stage.close()
