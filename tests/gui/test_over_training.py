"""The switch "Over training": what a panel shows at one frame as curves over the frames of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Difference, Pair, Reference, Side, Writer, open_capture, over_frames
from inspector.gui.export.figure_files import figure_bytes, save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.over_iterations import over_training
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, Page, RunStart, RunStop

STEPS = (0, 100, 1000)
RADII = (0.5, 1.0, 2.0)


def write(path: Path, steps: tuple[int | None, ...] = STEPS) -> Path:
    """Frames whose spectral radius doubles, whose gates close, and whose horizon comes nearer."""
    with Writer(path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for n, step in enumerate(steps):
            writer.write(Frame(index=n, label=f"iteration {step}", step=step))
            for channel, values in (
                (Channel(name="rnn:jacobian/spectral_radius", kind="jacobian", dims=("step",), shape=(6,),
                         dtype="float64", title="spectral radius", scale="log"), np.full(6, RADII[n])),
                (Channel(name="rnn:gate/forget", kind="gate", dims=("step", "unit"), shape=(6, 2), dtype="float64",
                         title="forget gate", limits=(0, 1)), np.tile([0.5, 0.5 * n], (6, 1))),
                (Channel(name="rnn:jacobian/lag", kind="lag", dims=("statistic", "lag"), shape=(1, 9), dtype="float64",
                         title="norm by lag", labels={"statistic": ("median",)}), 0.1 ** (n + np.arange(9.0))[None]),
                (Channel(name="attn:attention/entropy", kind="attention_statistic", dims=("head", "query"),
                         shape=(2, 4), dtype="float64", title="entropy", unit="nat"),
                 np.array([[1.0], [2.0 + n]]) * np.ones(4)),
            ):  # fmt: skip
                writer.write(channel)
                writer.write(Page(channel.name, n, (0,) * values.ndim, np.ascontiguousarray(values)))
        writer.write(RunStop("done"))
    return path / "a.inspect"


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    with open_capture(write(tmp_path)) as found:
        yield found


@pytest.fixture
def stage(capture: Capture) -> Iterator[Stage]:
    made = Stage(capture, (900, 500))
    yield made
    made.close()


def over(stage: Stage, key: str) -> Any:
    panel: Any = stage.panel(key)
    assert panel.over.switch.isVisibleTo(panel), key
    panel.over.switch.click()
    QApplication.processEvents()
    assert panel.state == "figure", panel._error.toPlainText()
    return panel


@pytest.mark.parametrize(("key", "title", "unit", "values"), [
    ("jacobians", "spectral radius: median", "", [0.5, 1.0, 2.0]),
    ("gates", "forget gate: share saturated", "", [0.5, 0.0, 0.5]),
    ("lags", "norm by lag: horizon", "steps", [4.0, 3.0, 2.0]),
])  # fmt: skip
def test_what_is_drawn_and_said_of_each_frame(
    stage: Stage, key: str, title: str, unit: str, values: list[float]
) -> None:
    panel = over(stage, key)
    (made,) = panel.over.column.shown
    assert made.plot.titleLabel.lines == (title,) and made.plot.getAxis("left").labelText == unit
    assert made.plot.getAxis("bottom").labelText == "iteration"
    assert made.series[0].x.tolist() == [0, 100, 1000]
    np.testing.assert_allclose(made.series[0].y, values)
    assert made.mark.value() == 1000, "the newest frame"
    (row,) = panel.labelled_readout()
    assert row[0] == f"{title.replace(':', ',')}  rnn" and float(row[1].split()[0]) == pytest.approx(values[2])
    stage.cursor.move(frame=0)
    assert made.mark.value() == 0 and float(panel.labelled_readout()[0][1].split()[0]) == pytest.approx(values[0])


def test_what_was_not_read_yet_is_drawn_once_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_training, "SECONDS", -1.0)  # no frame is read in time
    panel: Any = stage.panel("jacobians")
    panel.over.switch.click()
    assert panel.state == "figure" and not panel.over.column.shown
    monkeypatch.undo()
    QTest.qWait(20)
    assert panel.state == "figure" and panel.over.column.shown[0].series[0].y.tolist() == list(RADII)


def test_heads_are_lines_of_their_own(stage: Stage) -> None:
    panel = over(stage, "attention")
    (made,) = panel.over.column.shown
    assert [name for _, name in made.legend.entries] == ["attn head 0", "attn head 1"]
    assert [one.y.tolist() for one in made.series] == [[1, 1, 1], [2, 3, 4]]
    assert made.plot.getAxis("left").labelText == "nat"


def test_other_summaries_with_their_threshold(stage: Stage) -> None:
    panel = over(stage, "gates")
    panel.over.summary.setCurrentText("share above")
    panel.over.threshold.setValue(0.4)
    (made,) = panel.over.column.shown
    assert made.plot.titleLabel.lines == ("forget gate: share above 0.4",)
    np.testing.assert_allclose(made.series[0].y, [0.5, 1.0, 1.0])
    panel.over.summary.setCurrentText("largest")
    np.testing.assert_allclose(panel.over.column.shown[0].series[0].y, [0.5, 0.5, 1.0])
    assert not panel.over.threshold.isVisible()


def test_numbers_and_figure_that_are_saved_are_those_over_training(stage: Stage, tmp_path: Path) -> None:
    panel = stage.panel("jacobians")
    before = figure_bytes(panel, Path("a.svg"))
    panel.over.switch.click()
    QApplication.processEvents()
    with np.load(save_data(panel, tmp_path / "b.npz")) as saved:
        assert {name: saved[name].tolist() for name in saved} == {
            "rnn:jacobian_spectral_radius:median": [0.5, 1, 2], "rnn:jacobian_spectral_radius:iteration": [0, 100, 1000],
        }  # fmt: skip
    assert figure_bytes(panel, Path("a.svg")) != before
    panel.over.switch.click()
    with np.load(save_data(panel, tmp_path / "c.npz")) as saved:
        assert list(saved) == ["rnn:jacobian_spectral_radius"] and saved["rnn:jacobian_spectral_radius"].shape == (6,)


def test_curves_stay_while_a_frame_is_written(capture: Capture, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = over(stage, "jacobians")
    known = capture.revision
    monkeypatch.setattr(capture, "revision", lambda name, frame=-1: 0 if frame in (-1, 2) else known(name, frame))
    monkeypatch.setattr(capture, "changes", capture.changes + 1)
    panel.redraw()
    assert panel.state == "figure" and panel.over.on and panel.over.column.shown[0].series[0].y.tolist()[:2] == [0.5, 1]
    panel.over.switch.click()
    assert panel.state == "empty", "of the frame itself there is nothing yet"


def test_a_run_of_one_frame_has_no_switch(tmp_path: Path) -> None:
    with open_capture(write(tmp_path, (5,))) as found:
        made = Stage(found, (700, 400))
        panel = made.panel("jacobians")
        assert not panel.over.switch.isVisibleTo(panel)
        made.close()


def test_a_difference_of_two_frames_has_none(tmp_path: Path) -> None:
    with open_capture(write(tmp_path, (5, 9))) as found:
        made = Stage(found, (700, 400))
        panel = over(made, "jacobians")
        panel.set_capture(Difference(found, 0, 1))
        assert panel.state == "figure" and not panel.over.on and not panel.over.switch.isVisibleTo(panel)
        made.close()


def test_frames_without_iterations_are_numbered(tmp_path: Path) -> None:
    with open_capture(write(tmp_path, (None, None))) as found:
        made = Stage(found, (700, 400))
        panel = over(made, "jacobians")
        assert panel.over.column.shown[0].plot.getAxis("bottom").labelText == "frame"
        assert panel.over.column.shown[0].series[0].x.tolist() == [0, 1]
        made.close()


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


def test_a_click_on_a_frame_shows_it_in_every_panel(window: Window, tmp_path: Path) -> None:
    window.open_capture(str(write(tmp_path)))
    QTest.qWait(200)
    window.docks["jacobians"].raise_()
    panel: Any = window.panels["jacobians"]
    panel.over.switch.click()
    QTest.qWait(50)
    plot = panel.over.column.shown[0].plot
    for iteration, frame in ((90, 1), (990, 2), (20, 0)):
        middle = float(np.mean(plot.vb.viewRange()[1]))
        place = panel.over.figure.mapFromScene(plot.vb.mapViewToScene(QPointF(iteration, middle)))
        QTest.mouseClick(panel.over.figure.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QApplication.processEvents()
        assert window.frames.current == window.looking.position.frame == window.timeline.view.current == frame
        assert window.timeline.follow.isChecked() is (frame == 2) and plot.vb.isVisible()
        QTest.qWait(QApplication.doubleClickInterval() + 50)


def compared(tmp_path: Path, other_steps: tuple[int, ...] = (0, 50, 500)) -> tuple[Path, Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    return write(first, other_steps), write(second)


def test_both_runs_of_a_comparison_are_drawn_each_along_its_own_frames(tmp_path: Path, qtbot: Any) -> None:
    one, other = compared(tmp_path)
    with open_capture(one) as before, open_capture(other) as after:
        stage = Stage(after, (900, 500))
        panel = stage.panel("jacobians")
        pair = Pair(Reference(before, 2, "early frame 2"), Reference(after, 1, "late frame 1"))
        panel.set_capture(pair)
        assert panel.over.switch.isVisibleTo(panel)
        panel.over.switch.setChecked(True)
        qtbot.waitUntil(lambda: not panel.over._again.isActive())
        data = panel.over.data()
        for name, capture, steps in (("early", before, (0, 50, 500)), ("late", after, STEPS)):
            told = over_frames(capture, "rnn:jacobian/spectral_radius", "median")
            np.testing.assert_array_equal(data[f"rnn:jacobian/spectral_radius:median:{name}"], told.values[:, 0])
            np.testing.assert_array_equal(data[f"rnn:jacobian/spectral_radius:iteration:{name}"], steps)
        stage.cursor.move(frame=1)
        rows = dict(panel.labelled_readout())
        shown = {what: value for what, value in rows.items() if "spectral radius" in what}
        assert [what.partition(":")[0] for what in shown] == ["early", "late"]
        assert [float(value) for value in shown.values()] == [RADII[2], RADII[1]]
        lines = panel.over._lines.copy()
        panel.set_capture(Pair(Reference(before, 1, "early frame 1"), Reference(after, 2, "late frame 2")))
        assert panel.over._lines == lines, "another frame of the same two is not read anew"
        stage.close()


def test_beside_each_other_each_has_its_own_and_only_the_shown_one_chooses(tmp_path: Path, qtbot: Any) -> None:
    one, other = compared(tmp_path)
    with open_capture(one) as before, open_capture(other) as after:
        sides = Reference(before, 2, "early"), Reference(after, 1, "late")
        for side, chosen in ((Side(sides[0], sides[1], first=True), []), (Side(sides[1], sides[0]), [2])):
            stage = Stage(after, (900, 500))
            panel = stage.panel("jacobians")
            panel.set_capture(side)
            panel.over.switch.setChecked(True)
            qtbot.waitUntil(lambda panel=panel: not panel.over._again.isActive())
            steps = panel.over.data()["rnn:jacobian/spectral_radius:iteration"]
            assert steps.tolist() == ([0, 50, 500] if side.first else list(STEPS))
            framed: list[int] = []
            panel.over.framed.connect(framed.append)
            panel.over._clicked(None, 900.0, 0.0)
            assert framed == chosen
            stage.close()
