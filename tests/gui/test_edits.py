"""Edits from the window: the dialog, the frame bar, and what every panel then shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.dialogs.edit_dialog import EditDialog, signals_of
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.cursor import Position
from inspector.gui.window.frame_bar import DIFFERENCE, FrameBar
from inspector.records import Channel, Edit, Frame, Page, RunStart, RunStop


@pytest.fixture
def two_frames(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path / "two.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=("as it is", "rnn.l0:h[1]=0@2:")[frame]))
            h = Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(9, 3), scale="diverging")
            norm = Channel(
                name="rnn.l0:jacobian/spectral_norm", kind="jacobian", dims=("step",), shape=(9,), scale="log"
            )
            writer.write(h)
            writer.write(norm)
            writer.write(Page(h.name, frame, (0, 0), random.normal(size=(9, 3)).astype(np.float32)))
            writer.write(Page(norm.name, frame, (0,), random.random(9).astype(np.float32) + 0.1))
        only = Channel(name="rnn.l0:gate/r", kind="gate", dims=("step", "unit"), shape=(9, 3))
        writer.write(only)
        writer.write(Page(only.name, 1, (0, 0), np.zeros((9, 3), np.float32)))
        writer.write(RunStop("done"))
    return path


def test_differences_and_ratios(two_frames: Path) -> None:
    with open_capture(two_frames) as capture:
        both = Difference(capture, 0, 1)
        a, b = (capture.array("rnn.l0:h", frame) for frame in (0, 1))
        np.testing.assert_allclose(both.array("rnn.l0:h"), b - a)
        a, b = (capture.array("rnn.l0:jacobian/spectral_norm", frame) for frame in (0, 1))
        np.testing.assert_allclose(both.array("rnn.l0:jacobian/spectral_norm"), b / a, rtol=1e-6)
        assert set(both.channels) == {"rnn.l0:h", "rnn.l0:jacobian/spectral_norm"}, (
            "a gate of one frame has no difference"
        )
        low, high = both.overview("rnn.l0:h", size=(3, 3))
        difference = both.array("rnn.l0:h")
        np.testing.assert_allclose(low[0], difference[:3].min(0))
        np.testing.assert_allclose(high[0], difference[:3].max(0))


def test_the_dialog_begins_at_the_cursor(two_frames: Path, qtbot: Any) -> None:
    with open_capture(two_frames) as capture:
        assert signals_of(capture)["rnn.l0"].keys() == {"h", "gate/r"}
        dialog = EditDialog(capture, Position(place="rnn.l0", unit=1, step=4), (), None)
        qtbot.addWidget(dialog)
        dialog.value.setValue(0.5)
        dialog.add.click()
        assert dialog.edits() == (Edit(place="rnn.l0", signal="h", unit=1, value=0.5, start=4),)
        dialog.place.setCurrentText("input")
        dialog.add.click()
        assert "token" in dialog.problem.text() and dialog.list.count() == 1
        dialog.token.setText("q")
        dialog.go.click()
        assert dialog.edits()[1:] == () or dialog.edits()[1].text == "q"


def test_the_frame_bar_offers_the_difference(two_frames: Path, qtbot: Any) -> None:
    bar = FrameBar()
    qtbot.addWidget(bar)
    with open_capture(two_frames) as capture:
        bar.show_capture(capture)
        assert bar.isVisibleTo(None) or not bar.isHidden()
        assert [bar.frames.itemData(n) for n in range(bar.frames.count())] == [0, 1, DIFFERENCE]
        assert bar.current == 1
        bar.show_capture(None)
        assert bar.isHidden() and bar.current == -1


def test_panels_draw_a_difference(two_frames: Path, qapp: Any) -> None:
    with open_capture(two_frames) as capture:
        stage = Stage(capture, (800, 600))
        panel = stage.panel("states", frame=-1, place="rnn.l0")
        panel.set_capture(Difference(capture, 0, 1))
        assert panel.state == "figure"
        a, b = (capture.array("rnn.l0:h", frame) for frame in (0, 1))
        np.testing.assert_allclose(next(iter(panel.data().values())), b - a, rtol=1e-6)
        stage.close()


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """Two frames with gates and their saturation, counts of health and shares of paths."""
    random = np.random.default_rng(1)
    path = tmp_path / "edited.inspect"
    shares = random.random((3, 4))
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=("as it is", "rnn.l0:gate/forget[1]=0@2:")[frame]))
            gate = Channel(name="rnn.l0:gate/forget", kind="gate", dims=("step", "unit"), shape=(9, 4), limits=(0, 1))
            unit = Channel(
                name="rnn.l0:gate/forget/saturation", kind="unit", dims=("statistic", "unit"), shape=(3, 4),
                dtype="float64", labels={"statistic": ("left", "right", "graded")},
            )  # fmt: skip
            share = Channel(name="rnn.l0:path/share", kind="path", dims=("step",), shape=(9,), limits=(0, 1))
            lags = Channel(name="rnn.l0:bptt/w/lag", kind="bptt", dims=("statistic", "lag"), shape=(3, 9), scale="log")
            values = (random.random((9, 4)), shares.copy(), random.random(9), random.random((3, 9)))
            values[1][:, 1] = (0.9, 0.05, 0.05) if frame else shares[:, 1]
            for channel, array in zip((gate, unit, share, lags), values, strict=True):
                writer.write(channel)
                writer.write(Page(channel.name, frame, (0,) * array.ndim, array.astype(channel.dtype)))
        writer.write(RunStop("done"))
    return path


def test_saturation_of_two_runs_is_where_each_dot_went(edited: Path, qapp: Any) -> None:
    with open_capture(edited) as capture:
        stage = Stage(capture, (800, 600))
        panel = stage.panel("gates", place="rnn.l0")
        panel.set_capture(Difference(capture, 0, 1))
        before, after = (capture.array("rnn.l0:gate/forget/saturation", frame) for frame in (0, 1))
        x, y = panel.dots[0].getData()
        np.testing.assert_allclose((y, x), after[:2])
        (line,) = panel.moves
        x, y = line.getData()
        np.testing.assert_allclose(np.stack((x, y)), [[before[1, 1], after[1, 1]], [before[0, 1], after[0, 1]]])
        stage.cursor.move(step=3, unit=1, place="rnn.l0")
        told = dict(panel.readout(stage.cursor.position))
        assert any(value.endswith(" → 0.90 / 0.05 / 0.05") for value in told.values()), told
        panel.set_capture(capture)
        assert not panel.moves
        stage.close()


def test_a_panel_that_is_drawn_anew_says_so(edited: Path, qapp: Any) -> None:
    """The numbers under the cursor are read again: a choice in a panel changes them as the cursor does."""
    with open_capture(edited) as capture:
        stage = Stage(capture, (800, 600))
        panel = stage.panel("bptt", place="rnn.l0")
        panel.set_capture(Difference(capture, 0, 1))
        drawn: list[int] = []
        panel.drawn.connect(lambda: drawn.append(panel.frame))
        panel.one_run.activated.emit(1)
        panel.one_run.activated.emit(0)
        assert drawn == [0, 1]
        stage.close()


def test_what_belongs_to_one_run_is_shown_of_the_second(edited: Path, qapp: Any) -> None:
    with open_capture(edited) as capture:
        stage = Stage(capture, (800, 600))
        panel = stage.panel("bptt", place="rnn.l0")
        both = Difference(capture, 0, 1)
        panel.set_capture(both)
        assert panel.source is both and not panel.differs and not panel.one_run.isHidden()
        np.testing.assert_array_equal(panel.data()["rnn.l0:bptt/w/lag"], capture.array("rnn.l0:bptt/w/lag", 1))
        panel.one_run.setCurrentIndex(1)
        panel.one_run.activated.emit(1)
        assert panel.one_run.currentText() == "run as it was" and panel.stack.currentIndex() == 1
        np.testing.assert_array_equal(panel.data()["rnn.l0:bptt/w/lag"], capture.array("rnn.l0:bptt/w/lag", 0))
        panel.set_capture(both)
        assert panel.one_run.currentIndex() == 0 and panel.frame == 1
        panel.set_capture(capture)
        assert panel.one_run.isHidden() and panel.frame == -1
        paths = stage.panel("paths", place="rnn.l0")
        low, high = paths.shares.plot.vb.viewRange()[1]
        assert (low, high) == pytest.approx((-0.05, 1.05))
        paths.set_capture(both)
        change = both.array("rnn.l0:path/share")
        low, high = paths.shares.plot.vb.viewRange()[1]
        assert low < change.min() and high > change.max() and high - low < 1.3 * (change.max() - change.min())
        stage.close()
