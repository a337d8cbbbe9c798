"""The panel Pre-flight: its plots can be read in a low dock, however many sentences there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from panel_captures import channel, shown
from PySide6.QtWidgets import QApplication

import inspector
from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.preflight import DIRECTIONS, PLOT
from inspector.gui.widgets.theme import LIGHT
from inspector.records import Channel, Frame, Page, RunStart, RunStop, Scalar

TESTS = (
    "structure/causal",
    "structure/batch",
    "structure/order",
    "structure/repeat",
    "structure/query",
    "trial/learning_rate",
)
READABLE = 60


def test_every_plot_keeps_its_height_below_many_sentences(tmp_path: Path, qapp: QApplication) -> None:
    path = tmp_path / "a.inspect"
    inspector.run("first-digit-causal", "3141", out=str(path), only=list(TESTS)).close()
    with open_capture(path) as capture:
        for size in ((800, 280), (540, 400)):
            stage = Stage(capture, size, LIGHT)
            panel: Any = stage.panel("preflight")
            qapp.processEvents()
            drawn = [plot for plot in panel.plots if plot.isVisible()]
            text = panel.told.sceneBoundingRect()
            assert len(panel.found) >= 6 and len(drawn) == 3
            assert panel.figure.height() >= max(text.height(), len(drawn) * PLOT)
            assert all(plot.vb.height() >= READABLE for plot in drawn), [plot.vb.height() for plot in drawn]
            assert not any(plot.sceneBoundingRect().intersects(text) for plot in drawn)
            stage.close()


def test_in_a_wide_dock_the_map_is_a_square_in_sight_and_its_axis_says_which_inputs(
    tmp_path: Path, qapp: QApplication
) -> None:
    values, replaced = np.full((60, 60), np.nan), range(0, 60, 12)
    for source in replaced:
        values[source] = np.where(np.arange(60) >= source, 0.1, 0.0)
    with shown(tmp_path, "preflight", channel("model:structure/causal", "structure", ("source", "step"), values)) as (
        _stage, panel,
    ):  # fmt: skip
        panel.resize(826, 287)
        qapp.processEvents()
        panel.redraw()
        qapp.processEvents()
        inside = panel.row.plot.vb
        assert abs(inside.width() - inside.height()) <= 2 and inside.height() > 130
        assert panel.row.plot.sceneBoundingRect().bottom() <= panel.height()
        assert panel.input_axis.tickStrings([0.0, 2.0, 4.0], 1.0, 2.0) == ["0", "24", "48"]


def test_the_own_step_of_a_training_is_drawn_where_there_is_one(tmp_path: Path, qapp: QApplication) -> None:
    shapes = {"sgd": [1e-3, 1e-2], "own": [1e-4, 1e-3]}
    for name, own in (("with.inspect", True), ("without.inspect", False)):
        with Writer(tmp_path / name, RunStart(run="r", title="t")) as writer:
            writer.write(Frame(index=0, label="0"))
            for key, rates in shapes.items():
                if key == "own" and not own:
                    continue
                channel = f"model:trial/learning_rate/{key}"
                labels = {"statistic": ("learning rate", "loss")}
                writer.write(
                    Channel(
                        name=channel,
                        kind="trial",
                        dims=("statistic", "point"),
                        shape=(2, 2),
                        dtype="float64",
                        labels=labels,
                    )
                )
                writer.write(Page(channel, 0, (0, 0), np.array([rates, [2.0, 1.0]])))
                writer.write(Scalar(f"trial/learning_rate/{key}", 0, 0.01))
            if own:
                writer.write(Scalar("trial/learning_rate/rate", 0, 0.1))
            writer.write(RunStop("done"))
        with open_capture(tmp_path / name) as capture:
            stage = Stage(capture, (800, 600), LIGHT)
            panel = stage.panel("preflight")
            assert [text for _, text in panel.legend.entries] == ["SGD", "Adam", DIRECTIONS["own"]][: 2 + own]
            assert panel.rate_now.isVisible() is own
            if own:
                assert panel.rate_now.value() == -1.0 and panel.lines[-1].xData.tolist() == [-4.0, -3.0]
                (said,) = [one for one in panel.found if one.test == "own step"]
                assert said.word == "fault" and "10 times the critical length" in said.sentence
            stage.close()
