"""Training: columns as curves, grouped by name, with the checkpoint's step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.training import Training, thinned
from inspector.gui.widgets.axes import LogAxis
from inspector.records import Channel, Frame, Page, RunStart, RunStop


def written(path: Path, step: int | None) -> Path:
    names = ("step", "loss", "σ(W): largest", "σ(W): smallest", "rate")
    table = np.array([[0.0, 10, 20, 30], [4, 2, 1, 0.01], [1, 2, 3, np.nan], [1, 0.5, 0.25, 0.2], [-1, 0, 1, 2]])
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, step=step))
        channel = Channel(
            name="parameters:training", kind="training", dims=("statistic", "iteration"), shape=table.shape,
            dtype="float64", labels={"statistic": names},
        )  # fmt: skip
        writer.write(channel)
        writer.write(Page(channel.name, 0, (0, 0), table))
        writer.write(RunStop("done"))
    return path


def test_a_colon_puts_columns_into_one_plot_and_the_checkpoint_is_marked(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect", 20)) as capture:
        stage = Stage(capture, (700, 500))
        panel = stage.panel("training")
        assert isinstance(panel, Training)
        assert panel.groups == ("loss", "σ(W)", "rate")
        assert [name for _, name in panel.legends[1].entries] == ["largest", "smallest"] and not panel.legends[
            0
        ].entries
        logarithmic = [isinstance(plot.getAxis("left"), LogAxis) for plot in panel.shown]
        assert logarithmic == [True, False, False], "only what is positive and spans decades"
        for plot in panel.shown:
            low, high = plot.vb.viewRange()[1]
            assert plot.getAxis("left").range == [low, high], "the axis says what the view shows"
        np.testing.assert_allclose(panel.shown[0].vb.viewRange()[1], [-2.156, 0.758], atol=1e-3)
        assert all(line.isVisible() and line.value() == 20 for line in panel.mark)
        rows = dict(panel.readout(stage.cursor.position))
        assert rows["loss [training step 20]"] == "1" and rows["σ(W): smallest [training step 20]"] == "0.25"
        before = list(panel.shown)
        panel.redraw()
        assert panel.shown == before
        stage.close()


def test_without_a_step_nothing_is_marked_and_the_end_is_told(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect", None)) as capture:
        stage = Stage(capture, (700, 500))
        panel = stage.panel("training")
        assert isinstance(panel, Training) and not any(line.isVisible() for line in panel.mark)
        assert dict(panel.readout(stage.cursor.position))["σ(W): largest [training step 30]"] == "NaN"
        stage.close()


def test_many_points_become_minima_and_maxima() -> None:
    x, y = thinned(np.arange(50_000.0), np.tile([0.0, 1.0], 25_000))
    assert len(x) == 2400 and set(y) == {0.0, 1.0}
    steps, values = thinned(np.arange(7.0), np.arange(7.0))
    assert len(steps) == len(values) == 7
