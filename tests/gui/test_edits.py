"""Edits from the window: the dialog, the frame bar, and what every panel then shows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from opened import opened
from PySide6.QtGui import QImage

import inspector
import sample_models
from inspector.capture import Difference, Writer, open_capture
from inspector.gui.dialogs.edit_dialog import EditDialog, signals_of
from inspector.gui.export.figure_files import save_data, save_figure
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.compared import compared_runs, compared_runs_short, for_file, meaning, named_data, number_title
from inspector.gui.state.cursor import Position
from inspector.gui.window.bars.frame_bar import DIFFERENCE, FrameBar
from inspector.gui.window.cursor_readout import rows_of
from inspector.gui.window.docking.side_docks import Readout
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
                name="rnn.l0:jacobian/spectral_norm", kind="jacobian", dims=("step",), shape=(9,), scale="log",
                compare="ratio",
            )  # fmt: skip
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
        assert bar.places == (0, 1, DIFFERENCE) and bar.frames.count() == 3
        assert bar.current == 1
        bar.show_capture(None)
        assert bar.isHidden() and bar.current == -1
        bar.show_capture(capture)
        bar.begin(another=False)
        assert not bar.isHidden(), "the same model runs again: nothing moves"
        bar.show_capture(capture)
        bar.begin()
        bar.show_capture(cast(Any, SimpleNamespace(frames=())))
        assert bar.isHidden() and bar.frames.count() == 0 and bar.places == (), "a log has no frames"


def test_the_frames_of_a_sweep_are_no_edits(tmp_path: Path, qtbot: Any) -> None:
    folder = Path(sample_models.__file__).parent / "checkpoints" / "char_elman"
    bar = FrameBar()
    qtbot.addWidget(bar)
    steps = [str(folder / f"step-{step:06}.safetensors") for step in (0, 20, 80)]
    with inspector.sweep(steps, "char-elman", "Alice", only="states") as capture:
        bar.show_capture(capture)
        assert [bar.frames.itemText(n) for n in range(3)][1] == "1: step-000020.safetensors, step 20"
        assert bar.plain.isHidden() and not bar.isHidden() and bar.current == 2


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
            lags = Channel(name="rnn.l0:bptt/w/lag", kind="bptt", dims=("statistic", "lag"), shape=(3, 9), scale="log",
                           compare="separate", labels={"statistic": ("norm of the sum", "sum of the norms", "standard error")})  # fmt: skip
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
        assert any(value.endswith(" → 0.9 / 0.05 / 0.05") for value in told.values()), told
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
        assert panel.one_run.currentText() == "original run" and panel.stack.currentIndex() == 1
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
        reach = np.abs(change).max()
        assert low == -high and reach < high < 1.3 * reach, "0 is in the middle"
        stage.close()


# -- what is saved of a comparison says that it is one


LABELLED = "frame 1 (rnn.l0:h[1]=0@2:)", "frame 0 (as it is)"


@pytest.mark.parametrize(
    ("key", "name", "kind"),
    [
        ("states", "rnn.l0:h", "difference_frame_1_minus_frame_0"),
        ("jacobians", "rnn.l0:jacobian/spectral_norm", "ratio_frame_1_by_frame_0"),
    ],
)
def test_saved_numbers_of_two_runs_say_what_they_are(
    two_frames: Path, tmp_path: Path, key: str, name: str, kind: str
) -> None:
    with open_capture(two_frames) as capture:
        stage = Stage(capture, (700, 420))
        panel = stage.panel(key)
        plain = save_data(panel, tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
        assert plain[0].endswith(",value") and plain[1].startswith(f"{name},")
        assert for_file(panel) == compared_runs(panel) == compared_runs_short(panel) == ""
        panel.set_capture(Difference(capture, 0, 1))
        title = kind.partition("_")[0]
        rows = save_data(panel, tmp_path / "b.csv").read_text(encoding="utf-8").splitlines()
        assert rows[0].endswith(f",{title}") and all(row.startswith(f"{name}:{kind},") for row in rows[1:])
        with np.load(save_data(panel, tmp_path / "b.npz")) as archive:
            (saved,) = archive.files
            assert saved == f"{name}:{kind}".replace("/", "_")
            np.testing.assert_array_equal(archive[saved], Difference(capture, 0, 1).array(name))
        assert for_file(panel) == f"-{title}-of-frames-1-and-0"
        sign = "/" if title == "ratio" else "−"
        assert compared_runs(panel) == f"{title}: {LABELLED[0]} {sign} {LABELLED[1]}"
        png = QImage(str(save_figure(panel, tmp_path / "b.png")))
        assert png.text("Shown") == compared_runs(panel)
        assert compared_runs(panel) in save_figure(panel, tmp_path / "b.svg").read_text(encoding="utf-8")
        stage.close()


def test_a_panel_that_shows_one_run_of_two_says_which(two_frames: Path, tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=("as it is", "edited")[frame]))
            channel = Channel(name="rnn.l0:jacobian/eigenvalues", kind="spectrum", dims=("eigenvalue", "part"),
                              shape=(3, 2), title="eigenvalues", compare="separate", labels={"part": ("re", "im")})  # fmt: skip
            writer.write(channel)
            writer.write(Page(channel.name, frame, (0, 0), np.full((3, 2), frame, np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (700, 420))
        panel = stage.panel("spectra")
        panel.set_capture(Difference(capture, 0, 1))
        names = list(named_data(panel, panel.data()))
        assert all(name.endswith(":frame_1") for name in names) and number_title(panel) == "value"
        assert for_file(panel) == "-frame-1" and compared_runs(panel) == "frame 1 (edited)"
        panel.one_run.setCurrentIndex(1)
        panel.one_run.activated.emit(1)
        assert (
            all(name.endswith(":frame_0") for name in named_data(panel, panel.data())) and for_file(panel) == "-frame-0"
        )
        stage.close()


def test_what_training_noted_is_the_same_for_both_runs_and_never_subtracted(tmp_path: Path) -> None:
    table = np.array([[0.0, 10.0, 20.0], [3.0, 2.0, 1.5]])
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame))
            writer.write(Channel(name="parameters:training", kind="training", dims=("statistic", "iteration"),
                                 shape=table.shape, dtype="float64", compare="separate", labels={"statistic": ("step", "loss")}))  # fmt: skip
            writer.write(Page("parameters:training", frame, (0, 0), table))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (700, 420))
        panel = stage.panel("training")
        panel.set_capture(Difference(capture, 0, 1))
        assert not panel.differs
        np.testing.assert_array_equal(panel.data()["parameters:training"], table)
        stage.close()


def test_parts_of_channels_and_what_was_found_in_a_difference_are_told_apart(two_frames: Path) -> None:
    with open_capture(two_frames) as capture:
        both = Difference(capture, 0, 1)
        assert meaning(both, "rnn.l0:h head 3") == "difference" and meaning(both, "spans") == "of_difference"
        assert meaning(both, "rnn.l0:jacobian/spectral_norm") == "ratio"


def test_the_heading_of_the_fixed_values_is_not_cut_off(qtbot: Any) -> None:
    table = Readout()
    qtbot.addWidget(table)
    table.resize(220, 300)
    table.show()
    table.show_pins((), fixed=True)
    table.show_rows([("‖∂L/∂h‖", "1"), ("h", "2")])
    header = table.horizontalHeader()
    assert header.sectionSize(1) >= header.sectionSizeHint(1)


def test_numbers_that_are_read_and_copied_say_so_too(two_frames: Path, qtbot: Any) -> None:
    with open_capture(two_frames) as capture:
        stage = Stage(capture, (700, 420))
        panels = {key: stage.panel(key) for key in ("states", "jacobians")}
        stage.cursor.move(step=3, unit=1, place="rnn.l0")
        table = Readout()
        qtbot.addWidget(table)
        table.show_rows(rows_of(capture, panels, panels, ()))
        table.selectRow(1)
        assert table.selected_text().startswith("h[3, 1]  rnn.l0\t")
        for panel in panels.values():
            panel.set_capture(Difference(capture, 0, 1))
        rows = rows_of(capture, panels, panels, ())
        assert [what for what, value in rows if not value] == [
            "States: frame 1 against 0", "Jacobians: frame 1 against 0",
        ]  # fmt: skip
        difference = float(Difference(capture, 0, 1).array("rnn.l0:h")[3, 1])
        assert rows[1][0] == "Δ h[3, 1]  rnn.l0" and float(rows[1][1]) == pytest.approx(difference, rel=1e-5)
        ratio = float(Difference(capture, 0, 1).array("rnn.l0:jacobian/spectral_norm")[3])
        value, _, unit = rows[3][1].partition(" ")
        assert unit == "×" and float(value) == pytest.approx(ratio, rel=1e-5)
        table.show_rows(rows)
        table.selectRow(1)
        assert table.selected_text() == f"States: frame 1 against 0\n{rows[1][0]}\t{rows[1][1]}"
        table.selectAll()
        assert table.selected_text().count("frame 1 against 0") == 2
        stage.close()


def test_the_file_that_is_offered_is_named_by_the_comparison(
    qtbot: Any, two_frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = []

    def choose(_parent: Any, _title: str, name: str, _kinds: str) -> tuple[str, str]:
        offered.append(name)
        return "", ""

    monkeypatch.setattr("inspector.gui.window.saving.QFileDialog.getSaveFileName", choose)
    monkeypatch.setattr("inspector.gui.window.menus.QFileDialog.getExistingDirectory", lambda *_: str(tmp_path))
    with opened(qtbot, background=False) as window:
        window.open_capture(str(two_frames))
        window._choose_frame(DIFFERENCE)
        for text in ("States: Save numbers…", "Jacobians: Save figure…"):
            next(action for action in window.menu_actions if action.text() == text).trigger()
        next(action for action in window.menu_actions if action.text() == "&Export figures…").trigger()
    assert offered == ["states-difference-of-frames-1-and-0.npz", "jacobians-ratio-of-frames-1-and-0.png"]
    assert "states-difference-of-frames-1-and-0.png" in {path.name for path in tmp_path.glob("*.png")}


def test_a_head_is_ablated_from_the_dialog(tmp_path: Path, qtbot: Any) -> None:
    path = tmp_path / "heads.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        dims = ("head", "query", "key")
        for name, scale in (("a:attention", "sequential"), ("scan:attention", "diverging")):
            one = Channel(name=name, kind="attention", dims=dims, shape=(4, 9, 9), scale=scale)
            writer.write(one)
            writer.write(Page(name, 0, (0, 0, 0), np.zeros((4, 9, 9), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        assert signals_of(capture) == {"a": {"head": "a:attention"}}
        dialog = EditDialog(capture, Position(place="a", head=3, unit=7, step=2), (), None)
        qtbot.addWidget(dialog)
        assert dialog.start.maximum() == 8, "every query, not every head"
        assert dialog.edit() == Edit(place="a", signal="head", unit=3, value=0.0, start=2)
        assert dialog.form.labelForField(dialog.unit).text() == "Head" and dialog.unit.specialValueText() == "all heads"
        shown = EditDialog(capture, Position(place="a", step=2), (), None)
        qtbot.addWidget(shown)
        assert shown.edit().unit == 0, "the head that is shown where none was chosen, not all of them"
