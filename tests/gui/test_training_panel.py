"""Training: columns as curves, grouped by name, with the checkpoint's step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from panel_captures import channel, write_frames
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.training import Training
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import lengths_of
from inspector.gui.widgets.charts.series import thinned
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.bars.sequence_rows import SequenceRows
from inspector.records import Axis, Channel, Frame, Page, RunStart, RunStop


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
        assert [name for _, name in panel.legends[1].entries] == ["largest (1 NaN)", "smallest"] and not panel.legends[
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
        assert rows["loss [iteration 20]"] == "1" and rows["σ(W): smallest [iteration 20]"] == "0.25"
        before = list(panel.shown)
        panel.redraw()
        assert panel.shown == before
        stage.close()


def test_without_a_step_nothing_is_marked_and_the_end_is_told(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect", None)) as capture:
        stage = Stage(capture, (700, 500))
        panel = stage.panel("training")
        assert isinstance(panel, Training) and not any(line.isVisible() for line in panel.mark)
        assert dict(panel.readout(stage.cursor.position))["σ(W): largest [iteration 30]"] == "NaN"
        stage.close()


def test_many_points_become_minima_and_maxima() -> None:
    x, y = thinned(np.arange(50_000.0), np.tile([0.0, 1.0], 25_000))
    assert len(x) == 2400 and set(y) == {0.0, 1.0}
    steps, values = thinned(np.arange(7.0), np.arange(7.0))
    assert len(steps) == len(values) == 7


LOSSES, WEIGHTS = np.array([[8.0, 4.0, 2.0, 1.0]]), np.array([[0.5, 0.25]])
NUMBERS = {"iteration": np.array([0.0, 100.0, 250.0, np.nan]), "iteration/measured": np.array([0.0, 250.0])}


def numbered(path: Path) -> Path:
    """Two tables over axes of their own, whose positions have numbers of their own."""
    tables = {"training": ("iteration", "loss", LOSSES), "training/measured": ("iteration/measured", "σ", WEIGHTS)}
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for name, (axis, label, values) in tables.items():
            writer.write(Axis(name=axis, title="iteration", length=values.shape[1], unit="iteration"))
            dims, domains = ("statistic", "iteration"), {"iteration": axis}
            for channel, array in (
                (Channel(name=f"parameters:{axis}", kind="coordinate", dims=dims[1:], shape=values.shape[1:],
                         dtype="float64", domains=domains), NUMBERS[axis]),
                (Channel(name=f"parameters:{name}", kind="training", dims=dims, shape=values.shape, dtype="float64",
                         labels={"statistic": (label,)}, domains=domains), values),
            ):  # fmt: skip
                writer.write(channel)
                writer.write(Page(channel.name, 0, (0,) * array.ndim, array))
        writer.write(RunStop("done"))
    return path


def test_curves_stand_at_their_iterations_and_the_cursor_walks_them(tmp_path: Path) -> None:
    with open_capture(numbered(tmp_path / "a.inspect")) as capture:
        stage = Stage(capture, (700, 500))
        panel = stage.panel("training")
        assert isinstance(panel, Training) and panel.groups == ("loss", "σ")
        for made, numbers in zip(panel.shown_plots, ([0, 100, 250], [0, 250]), strict=True):
            assert made.series[0].x.tolist() == numbers
        assert panel.shown[-1].getAxis("bottom").labelText == "iteration"
        panel.pointed(panel.shown[0], 180.0, 0.0)
        assert stage.cursor.position.steps == {"iteration": 2}, "250 is nearer"
        panel.pointed(panel.shown[1], 170.0, 0.0)
        assert stage.cursor.position.steps == {"iteration": 1}, "100 is nearer"
        QTest.keyClick(panel, Qt.Key.Key_Right)
        assert stage.cursor.position.at("iteration") == 2 and stage.cursor.position.step is None
        assert all(plot._line.isVisible() and plot._line.value() == 250 for plot in panel.shown)
        assert dict(panel.labelled_readout()) == {"loss [iteration 250]": "2", "σ [iteration 250]": "0.25"}
        QTest.keyClick(panel, Qt.Key.Key_Left)
        assert dict(panel.labelled_readout()) == {"loss [iteration 100]": "4", "σ [iteration 0]": "0.5"}
        QTest.keyClick(panel, Qt.Key.Key_End)
        assert not any(plot._line.isVisible() for plot in panel.shown), "nobody knows which iteration that is"
        stage.close()


def test_saved_numbers_carry_their_iterations(tmp_path: Path) -> None:
    with open_capture(numbered(tmp_path / "a.inspect")) as capture:
        stage = Stage(capture, (700, 500))
        with np.load(save_data(stage.panel("training"), tmp_path / "a.npz")) as saved:
            assert {name: saved[name].tolist()[:3] for name in saved if "training" not in name} == {
                "parameters:iteration": [0, 100, 250], "parameters:iteration_measured": [0, 250]
            }  # fmt: skip
            np.testing.assert_array_equal(saved["parameters:training"], LOSSES)
        stage.close()


def test_iterations_have_no_strip(tmp_path: Path, qapp: object) -> None:
    with open_capture(numbered(tmp_path / "a.inspect")) as capture:
        lengths = lengths_of(capture)
        assert lengths == {"iteration": 4, "iteration/measured": 2}
        rows = SequenceRows(Cursor(), LIGHT, Settings())
        rows.grown(capture, lengths, frozenset())
        assert list(rows) == [rows.input]
        rows.deleteLater()


def test_another_capture_may_have_other_columns(tmp_path: Path, qapp: QApplication) -> None:
    """A plot that was taken out of the picture with its legend ended the process."""
    found = []
    for number, names in enumerate((("loss", "norm"), ("loss", "norm", "x: a", "x: b", "y"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = np.outer(np.arange(1.0, len(names) + 1), np.arange(1.0, 5.0))
        dims, labels = ("statistic", "iteration"), {"statistic": names}
        found.append(open_capture(write_frames(folder, channel("p:training", "training", dims, table, labels=labels))))
    stage = Stage(found[0], (700, 500))
    panel = stage.panel("training")
    assert isinstance(panel, Training)
    for capture, groups in ((found[1], 4), (found[0], 2), (found[1], 4)):
        panel.set_capture(capture)
        qapp.processEvents()
        assert [made.plot.isVisible() for made in panel.column.made] == [
            row < groups for row in range(len(panel.column.made))
        ]
        assert [plot.getAxis("bottom").labelText for plot in panel.shown] == [*[""] * (groups - 1), "iteration"]
    stage.close()
    for capture in found:
        capture.close()
