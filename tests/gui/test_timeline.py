"""The timeline below the panels, and a capture that grows while it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer
from inspector.gui.window.main_window import Window
from inspector.gui.window.training.timeline import TimelineView
from inspector.gui.window.training.timeline_data import Lane, TimelineData, columns
from inspector.records import Axis, Channel, Event, Frame, Page, RunStart, RunStop
from inspector.records.run import EDITS

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made


class Training:
    """A run that grows as inspector.watch writes it: a loss, probes, events."""

    def __init__(self, path: Path, *, series: bool = True) -> None:
        self.path, self.count, self.frames, self.series = path, 0, 0, series
        self.writer = Writer(path, RunStart(run="r", title="training", meta={"training": {}}))
        if series:
            self.writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
            for name, kind, title in (("iteration", "coordinate", "iteration"), ("loss", "series", "loss")):
                self.writer.write(Channel(name=f"training:{name}", kind=kind, dims=("iteration",), shape=(None,),
                                          dtype="float64", title=title))  # fmt: skip

    def iterate(self, count: int) -> None:
        """Some more iterations."""
        numbers = np.arange(self.count, self.count + count, dtype=np.float64)
        self.writer.write(Page("training:iteration", 0, (self.count,), 10 * numbers))
        self.writer.write(Page("training:loss", 0, (self.count,), np.exp(-numbers / 50)))
        self.count += count
        self.writer.flush()

    def probe(self, step: int | None) -> None:
        """One more frame; every cell of its state is its number."""
        self.writer.write(Frame(index=self.frames, label=f"iteration {step}", step=step))
        self.writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(5, 2), title="h"))
        self.writer.write(Page("rnn:h", self.frames, (0, 0), np.full((5, 2), self.frames, np.float32)))
        self.frames += 1
        self.writer.flush()

    def end(self) -> None:
        """The end of the run."""
        self.writer.write(RunStop("done"))
        self.writer.close()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    made = Training(tmp_path / "run.inspect")
    made.iterate(100)
    for step in (0, 400, 900):
        made.probe(step)
    made.writer.write(Event(500.0, "spike", "norm 12 times its <b>median</b>", 2))
    made.writer.flush()
    yield made
    made.writer.close()


def seen(window: Window) -> float:
    """The number of the frame that the panel of states has drawn."""
    found = next(iter(window.panels["states"].data().values()))
    return float(np.asarray(found).flat[0])


def tick(window: Window) -> None:
    """What was written since is taken and drawn."""
    QTest.qWait(300)
    QApplication.processEvents()


def open_it(window: Window, training: Training) -> None:
    window.open_capture(str(training.path))
    tick(window)


def place(window: Window, iteration: float) -> QPoint:
    view = window.timeline.view
    return QPoint(round(view.x_of(iteration)), view.height() - 24)


def test_the_timeline_has_lanes_frames_and_events(window: Window, training: Training) -> None:
    assert not window.timeline_row.isVisible()
    open_it(window, training)
    data = window.timeline.view.data
    assert window.timeline_row.isVisible() and [lane.name for lane in data.lanes] == ["loss"]
    assert [at for _, at in data.frames] == [0, 400, 900] and data.word == "iteration"
    assert (data.low, data.high) == (0, 990)
    said = window.timeline.view.said_at(window.timeline.view.x_of(500))
    assert "spike at iteration 500: norm 12 times its <b>median</b>" in said.splitlines()
    assert "loss [iteration 500]: 0.3679" in said
    assert window.timeline.shown.whole == "frame 2 of 0–2: iteration 900"


def test_dragging_chooses_the_frame_of_all_panels(window: Window, training: Training) -> None:
    open_it(window, training)
    view = window.timeline.view
    QTest.mousePress(view, LEFT, pos=place(window, 880))
    QTest.mouseMove(view, place(window, 300))
    assert view.current in (1, 2)
    QTest.mouseRelease(view, LEFT, pos=place(window, 300))
    QTest.mouseClick(view, LEFT, pos=place(window, 350))
    assert window.looking.position.frame == 1 and seen(window) == 1
    assert window.frames.current == 1 and not window.timeline.follow.isChecked()
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert window.looking.position.frame == 0 and seen(window) == 0
    QTest.keyClick(view, Qt.Key.Key_End)
    assert seen(window) == 2 and window.timeline.follow.isChecked(), "the newest is followed again"


def test_new_frames_are_followed_until_an_older_one_is_chosen(window: Window, training: Training) -> None:
    open_it(window, training)
    training.iterate(20)
    training.probe(1100)
    tick(window)
    assert seen(window) == 3 and window.timeline.view.data.high == 1190
    window.timeline.view._choose(1)
    training.iterate(20)
    training.probe(1300)
    tick(window)
    assert seen(window) == 1 and window.frames.current == 1, "nothing jumps"
    assert len(window.timeline.view.data.frames) == 5 and window.timeline.shown.whole.startswith("frame 1 of 0–4")
    QTest.mouseClick(window.timeline.follow, LEFT, pos=QPoint(8, window.timeline.follow.height() // 2))
    assert window.timeline.follow.isChecked() and seen(window) == 4


def test_the_first_frame_stays_when_it_was_chosen(window: Window, training: Training) -> None:
    open_it(window, training)
    window.timeline.view._choose(0)
    training.probe(1000)
    tick(window)
    assert window.frames.current == 0 and seen(window) == 0


def test_curves_grow_while_they_are_shown(window: Window, training: Training) -> None:
    open_it(window, training)
    panel: Any = window.panels["training"]
    window.docks["training"].raise_()
    tick(window)
    assert panel.shown_plots[0].series[0].x[-1] == 990
    training.iterate(50)
    tick(window)
    assert panel.shown_plots[0].series[0].x[-1] == 1490 and panel.shown[0].vb.viewRange()[0][1] > 1490


def test_a_range_of_the_timeline_is_shown_by_the_curves(window: Window, training: Training) -> None:
    open_it(window, training)
    view, panel = window.timeline.view, window.panels["training"]
    QTest.mousePress(view, LEFT, Qt.KeyboardModifier.ShiftModifier, place(window, 200))
    QTest.mouseMove(view, place(window, 600))
    QTest.mouseRelease(view, LEFT, Qt.KeyboardModifier.ShiftModifier, place(window, 600))
    low, high = panel.shown[0].vb.viewRange()[0]  # type: ignore[attr-defined]
    assert abs(low - 200) < 5 and abs(high - 600) < 5
    training.iterate(10)
    tick(window)
    assert panel.shown[0].vb.viewRange()[0] == [low, high]  # type: ignore[attr-defined]
    shown, followed = view.current, window.frames.following
    QTest.mouseClick(view, LEFT, pos=place(window, 100))  # the first half of a double-click
    assert view.current != shown
    QTest.mouseDClick(view, LEFT, pos=place(window, 100))
    assert panel.shown[0].vb.viewRange()[0][1] > 1000  # type: ignore[attr-defined]
    assert (view.current, window.frames.following) == (shown, followed), "the frame stays"


def test_frames_are_played_to_the_end(window: Window, training: Training, qtbot: Any) -> None:
    open_it(window, training)
    window.timeline._timer.setInterval(20)
    window.timeline.play.click()
    assert window.looking.position.frame == 0
    qtbot.waitUntil(lambda: not window.timeline.play.isChecked(), timeout=5000)
    assert window.looking.position.frame == 2 and window.timeline.play.text() == "Play"


def test_the_status_row_says_whether_the_training_still_runs(window: Window, training: Training) -> None:
    open_it(window, training)
    assert window.status.training.text() == "The training is running: iteration 990"
    training.iterate(1)
    tick(window)
    assert window.status.training.text() == "The training is running: iteration 1,000"
    training.end()
    tick(window)
    assert window.status.training.text() == ""


def test_a_writer_that_died_is_told(window: Window, training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    open_it(window, training)
    monkeypatch.setattr("inspector.capture.reader.is_alive", lambda _pid, _mark: False)
    QTest.qWait(1300)
    assert window.status.training.text() == "The training ended without closing its capture: iteration 990"


@pytest.mark.parametrize("steps", [(None, None), (7, 7)])
def test_frames_without_series_are_counted(window: Window, tmp_path: Path, steps: tuple[int | None, ...]) -> None:
    run = Training(tmp_path / "edited.inspect", series=False)
    run.probe(steps[0])
    window.open_capture(str(run.path))
    tick(window)
    assert not window.timeline_row.isVisible(), "one frame and no series"
    run.probe(steps[1])
    tick(window)
    view = window.timeline.view
    assert window.timeline_row.isVisible() and view.data.word == "frame" and not view.data.lanes
    (_, first), (_, second) = view.frames_at()
    assert second - first > 7 and seen(window) == 1
    run.end()


def test_an_edited_run_has_no_timeline_and_nothing_over_training(window: Window, tmp_path: Path) -> None:
    for name, meta in (("moments", {}), ("edited", {EDITS: ["l:h[1]=0@2:"]})):
        state = Channel(name="l:h", kind="state", dims=("step", "unit"), shape=(9, 3), title="h")
        with Writer(tmp_path / f"{name}.inspect", RunStart(run=name, title=name)) as writer:
            for frame in (0, 1):
                writer.write(Frame(index=frame, label=str(frame), meta=meta if frame else {}))
                writer.write(state)
                writer.write(Page(state.name, frame, (0, 0), np.full((9, 3), frame, np.float32)))
            writer.write(RunStop("done"))
    switch = window.panels["states"].over.switch
    for name, moments in (("edited", False), ("moments", True), ("edited", False)):
        window.open_capture(str(tmp_path / f"{name}.inspect"))
        tick(window)
        assert window.timeline_row.isVisible() is moments and window.frames.isVisible()
        assert switch.isHidden() is not moments


def test_frames_have_whole_numbers_and_other_axes_may_not() -> None:
    assert TimelineData(word="frame", high=1.0).places(12) == [0.0, 1.0]
    assert TimelineData(word="iteration", high=3000.0).places(4) == [0.0, 1000.0, 2000.0, 3000.0]
    assert TimelineData(word="epoch", high=1.0).places(4) == [0.0, 0.5, 1.0]


def test_a_lane_has_every_extreme_and_no_number_where_there_is_none() -> None:
    y = np.ones(10_000)
    y[5_000], y[7_000] = 3.0, np.nan
    found = columns(Lane("a", np.arange(10_000.0), y), 0, 9_999, 100)
    assert int(found.greatest.argmax()) in (49, 50) and found.greatest.max() == found.greatest.sum() == 1
    assert np.isfinite(found.least).all()
    found = columns(Lane("a", np.array([0.0, 10.0]), np.array([np.nan, np.inf])), 0, 10, 20)
    assert np.isnan(found.least).all() and np.isnan(found.greatest).all()


def test_a_spike_of_one_iteration_is_drawn_to_its_height_or_marked_where_it_goes_beyond() -> None:
    x = np.arange(10_000.0)
    y = 10 + np.sin(x / 300)
    y[5_000] = 14.0
    found = columns(Lane("a", x, y), 0, 9_999, 1000)
    assert found.greatest[500] == 1 and (found.greatest == 1).sum() == 1 and not found.above.any()
    others = np.delete(found.greatest, 500)
    assert others.max() == pytest.approx((11 - 9) / (14 - 9), abs=0.01) and others.min() < 0.01
    y[5_000], y[3_000] = 99.0, -50.0
    found = columns(Lane("a", x, y), 0, 9_999, 1000)
    assert np.flatnonzero(found.above).tolist() == [500] and np.flatnonzero(found.below).tolist() == [300]
    assert np.ptp(np.delete(found.greatest, [300, 500])) > 0.45, "the rest is not flat"


def test_what_goes_beyond_a_lane_has_a_mark_on_screen(qapp: QApplication) -> None:
    x = np.arange(1000.0)
    y = 10 + np.sin(x / 30)
    pictures = []
    for spike in (10.0, 500.0):
        y[500] = spike
        view = TimelineView()
        view.resize(1000, 60)
        view.show_data(TimelineData(lanes=(Lane("a", x, y.copy()),), low=0.0, high=999.0), -1)
        pictures.append(view.grab().toImage())
        at = round(view.x_of(500))
        view.deleteLater()
    tops = [[one.pixelColor(at + n, 3) for n in (-1, 0, 1)] for one in pictures]
    assert tops[0] != tops[1]
