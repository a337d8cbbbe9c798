"""Two captures in one window: a sample model at two checkpoints, and on another text, by what a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import START
from compared import STATE, capture_of, frame_of
from opened import opened
from PySide6.QtWidgets import QApplication, QComboBox, QMessageBox, QStyle, QStyleOptionComboBox
from safetensors.numpy import load_file

import inspector
from inspector.analysis.distributions import distances
from inspector.capture import Writer, open_capture
from inspector.gui.export.figure_files import save_data
from inspector.gui.panel.compared import compared_runs
from inspector.gui.window.comparing.compare_bar import CHANGE, SIDES, WORDS, CompareBar
from inspector.gui.window.main_window import Window
from inspector.records import Frame, Labels, Page, RunStop
from inspector.workspace.samples import find_sample

ONLY = ("states", "output/loss", "jacobian/lag", "jacobian/spectral_norm", "input", "training")
STATES, NORM = "rnn.l0:h", "rnn.l0:jacobian/spectral_norm"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """early.inspect and late.inspect: two checkpoints on one text; other.inspect: the later one on another text."""
    folder = tmp_path_factory.mktemp("compared")
    sample = find_sample("char-elman")
    assert sample is not None
    texts = {"early": "Alice was tired", "late": "Alice was tired", "other": "Alice is so tired"}
    for name, text in texts.items():
        checkpoint = sample.checkpoints[1 if name == "early" else -1]
        run = inspector.run("char-elman", text, checkpoint=str(checkpoint), only=ONLY, out=folder / f"{name}.inspect")
        run.close()
    return folder


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


def compared(window: Window, qtbot: Any, runs: Path, first: str, way: str = CHANGE) -> Any:
    """The States panel of late.inspect compared with another."""
    window.open_capture(str(runs / "late.inspect"))
    window.comparing.begin(str(runs / f"{first}.inspect"))
    choose(window, way)
    qtbot.wait(50)
    return window.panels["states"]


def choose(window: Window, way: str) -> None:
    window.compare.way.setCurrentIndex(window.compare.way.findData(way))
    window.compare.way.activated.emit(0)


def rows_shown(window: Window) -> list[tuple[str, str]]:
    table = window.readout
    return [(table.item(n, 0).text(), table.item(n, 1).text()) for n in range(table.rowCount())]


def values(runs: Path, name: str, channel: str = STATES) -> Any:
    with open_capture(runs / f"{name}.inspect") as capture:
        return capture.array(channel)


def test_runs_beside_each_other_are_told_about_while_the_overview_is_in_front(
    window: Window, qtbot: Any, runs: Path
) -> None:
    window.open_capture(str(runs / "late.inspect"))
    window.docking.show_panel("overview")
    qtbot.waitUntil(lambda: window.panels["overview"].state == "figure", timeout=5000)
    window.comparing.begin(str(runs / "early.inspect"))
    choose(window, SIDES)
    qtbot.wait(300)
    shown = window.panels["overview"].capture
    assert shown is not None and shown.path.name in ("late.inspect", "early.inspect")
    assert "error" not in window.session.sentence
    choose(window, CHANGE)
    qtbot.wait(100)
    assert window.panels["overview"].capture.path.name == "late.inspect"


def test_differences_and_ratios_are_read_with_their_runs(window: Window, qtbot: Any, runs: Path) -> None:
    panel = compared(window, qtbot, runs, "early")
    difference = values(runs, "late") - values(runs, "early")
    assert window.compare.name.text() == "Compared with early.inspect" and not window.compare.frames.isVisible()
    assert window.compare.said.whole.startswith(f"{len(window.comparing.pair.channels)} channels compared")
    assert window.compare.said.whole in window.compare.said.toolTip(), "where the bar is narrow it is cut"
    assert panel.row.plot.titleLabel.text.startswith("Δ ") and panel.row.map._levels.scale == "diverging"
    top = float(np.percentile(np.abs(difference), 99.5))
    assert float(panel.row.bar._ticks()[2][1]) == pytest.approx(top, rel=0.02)
    window.looking.move(step=4, unit=7, place="rnn.l0")
    rows = dict(panel.labelled_readout())
    assert float(rows["Δ h[4, 7]  rnn.l0"]) == pytest.approx(difference[4, 7], rel=1e-3)
    assert compared_runs(panel).startswith("difference: late.inspect")
    lines = window.panels["jacobians"]
    found = next(array for name, array in lines.data().items() if name == NORM)
    np.testing.assert_array_equal(found, values(runs, "late", NORM) / values(runs, "early", NORM))
    window._read_out()
    assert any("late.inspect against early.inspect" in row[0] for row in rows_shown(window))


def test_files_of_a_comparison_are_named_by_both_runs(window: Window, qtbot: Any, runs: Path, tmp_path: Path) -> None:
    panel = compared(window, qtbot, runs, "early")
    save_data(panel, tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz") as archive:
        name = f"{STATES}:difference_late.inspect_minus_early.inspect"
        np.testing.assert_array_equal(archive[name], values(runs, "late") - values(runs, "early"))


def test_side_by_side_share_cursor_steps_choices_and_colours(window: Window, qtbot: Any, runs: Path) -> None:
    panel = compared(window, qtbot, runs, "early", SIDES)
    qtbot.waitUntil(lambda: "states" in window.comparing.beside.twins)
    twin = window.comparing.beside.twins["states"]
    left = twin.panel_at_left
    assert [name.text() for name in twin.names] == ["early.inspect", "late.inspect"]
    assert left.isVisible() and left.state == "figure"
    np.testing.assert_array_equal(left.data()[STATES], values(runs, "early"))
    assert left.row.bar._ticks() == panel.row.bar._ticks()
    window._read_out()
    assert not any(value == "" for _, value in rows_shown(window)[-1:]), "no heading without numbers below it"
    window.looking.move(step=3, unit=2)
    assert left.plots[0]._line.value() == panel.plots[0]._line.value() == 3
    qtbot.wait(50)
    ranges = [one.trace.vb.viewRange()[1] for one in (left, panel)]
    both = np.concatenate([values(runs, name)[:, 2] for name in ("early", "late")])
    assert ranges[0] == ranges[1] and ranges[0][0] <= both.min() and ranges[0][1] >= both.max()
    assert left.row.plot.vb.viewRange()[1] == [-0.5, values(runs, "early").shape[1] - 0.5]
    window.steps.set(2, 9)
    assert left.plots[0].vb.viewRange()[0] == panel.plots[0].vb.viewRange()[0]
    panel.order.setCurrentIndex(1)
    assert left.order.currentText() == panel.order.currentText() == panel.order.itemText(1)
    window.choose_theme("Dark" if not window.theme.dark else "Light")
    assert left.theme is panel.theme is window.theme
    window._read_out()
    headings = [what for what, value in rows_shown(window) if not value]
    assert "States: late.inspect" in headings and "States: early.inspect" in headings
    window.comparing.end()
    assert window.comparing.beside.twins == {} and panel.isVisible() and not window.compare.isVisible()
    np.testing.assert_array_equal(panel.data()[STATES], values(runs, "late"))


def test_equal_colours_are_equal_numbers_also_in_maps_by_lag(window: Window, qtbot: Any, runs: Path) -> None:
    compared(window, qtbot, runs, "early", SIDES)
    window.docks["lags"].raise_()
    qtbot.waitUntil(lambda: "lags" in window.comparing.beside.twins, timeout=5000)
    panel, left = window.panels["lags"], window.comparing.beside.twins["lags"].panel_at_left
    assert panel.row.bar._ticks() == left.row.bar._ticks()
    alone = np.concatenate([values(runs, name, "rnn.l0:jacobian/lag_map").ravel() for name in ("early", "late")])
    top = np.percentile(alone[np.isfinite(alone) & (alone > 0)], 99.5)
    assert float(panel.row.bar._ticks()[2][1]) == pytest.approx(top, rel=0.05)


def test_other_tokens_are_aligned_and_gaps_are_said(window: Window, qtbot: Any, runs: Path) -> None:
    panel = compared(window, qtbot, runs, "other")
    alignment = window.comparing.pair.alignments["step"]
    assert alignment.sentence in window.compare.said.whole
    shown = window.sequence.strip._names
    assert tuple(shown) == alignment.names and any(name.startswith("+ ") for name in shown)
    assert window.steps.length == len(alignment.names)
    gap = int(np.flatnonzero(alignment.second < 0)[0])
    both = int(np.flatnonzero((alignment.second >= 0) & (alignment.first >= 0))[-1])
    window.looking.move(step=gap, unit=1, place="rnn.l0")
    assert dict(panel.labelled_readout())[f"Δ h[{gap}, 1]  rnn.l0"] == "not there"
    window.looking.move(step=both, unit=1)
    wanted = values(runs, "late")[alignment.second[both], 1] - values(runs, "other")[alignment.first[both], 1]
    assert float(dict(panel.labelled_readout())[f"Δ h[{both}, 1]  rnn.l0"]) == pytest.approx(wanted, rel=1e-3, abs=1e-6)
    assert "not there" in [text for _, text in panel.row.bar._notes()]


def test_all_channels_in_a_table_with_their_distributions(window: Window, qtbot: Any, runs: Path) -> None:
    compared(window, qtbot, runs, "early")
    window.compare.all.click()
    pane = window.comparison
    qtbot.waitUntil(lambda: pane.table.rowCount() > 0 and pane.current != "", timeout=20_000)
    assert window.docks["comparison"].isVisible()
    before = pane.height()
    window.docking.enlarge_front()
    assert window.docking.enlarged == "comparison", "the list has the keyboard, so F9 enlarges it"
    qtbot.waitUntil(lambda: pane.height() > before)
    window.docking.enlarge_front()
    names = [pane.table.item(row, 0).text() for row in range(pane.table.rowCount())]
    relative = [pane.table.item(row, 1).text() for row in range(pane.table.rowCount())]
    numbers = [float(text) for text in relative if text]
    assert numbers == sorted(numbers, reverse=True)
    row = names.index(STATES)
    a, b = (values(runs, name).astype(float) for name in ("early", "late"))
    assert relative[row] == f"{np.linalg.norm(b - a) / np.linalg.norm(a):.3g}"
    pane.table.setCurrentCell(row, 0)
    ks, area = distances(np.sort(a.ravel()), np.sort(b.ravel()))
    assert pane.distances.text() == (
        f"{STATES}: Kolmogorov–Smirnov distance {ks:.3g}, Wasserstein distance {area:.3g} "
        f"(n = {a.size:,} and {b.size:,})"
    )
    plot = pane._plot
    assert [name for _, name in plot.legend.entries] == ["early.inspect", "late.inspect"]
    assert plot.plot.getAxis("left").labelText == "share of numbers"
    assert plot.plot.getAxis("bottom").labelText == "hidden state"
    token = names.index("input:token")
    assert pane.table.item(token, 5).text() == "read one run at a time"


def test_parameters_that_changed_most_are_those_of_the_checkpoints(window: Window, qtbot: Any, runs: Path) -> None:
    compared(window, qtbot, runs, "early")
    table = window.comparison.parameters
    window.comparison.tabs.setCurrentWidget(table)
    qtbot.waitUntil(lambda: table.table.rowCount() > 0, timeout=20_000)
    sample = find_sample("char-elman")
    assert sample is not None
    a, b = (load_file(sample.checkpoints[n]) for n in (1, -1))
    sizes = {
        name: np.linalg.norm(b[name].astype(float) - a[name]) / np.linalg.norm(a[name].astype(float)) for name in a
    }
    listed = [(table.table.item(n, 0).text(), table.table.item(n, 1).text()) for n in range(table.table.rowCount())]
    assert listed == [(name, f"{sizes[name]:.4g}") for name in sorted(sizes, key=sizes.__getitem__, reverse=True)]
    assert table.said.whole.endswith(f"{len(a)} of {len(a)} tensors changed")


def test_frames_of_one_capture_are_compared_and_chosen(window: Window, qtbot: Any, tmp_path: Path) -> None:
    frames = [frame_of(n) for n in (1, 2, 3)]
    capture_of(tmp_path / "a.inspect", *frames, steps=(0, 10, 20))
    window.open_capture(str(tmp_path / "a.inspect"))
    window.comparing.begin_frames()
    panel = window.panels["states"]
    assert window.compare.name.text() == "Compared with" and window.compare.frames.count() == 3
    np.testing.assert_array_equal(window.panels.source.array(STATE.name), frames[2][STATE.name] - frames[0][STATE.name])
    assert compared_runs(panel) == "difference: frame 2 (moment 2) − frame 0 (moment 0)"
    window.compare.frames.setCurrentIndex(1)
    window.compare.frames.activated.emit(1)
    window.frames.choose(0)
    np.testing.assert_array_equal(window.panels.source.array(STATE.name), frames[0][STATE.name] - frames[1][STATE.name])
    assert compared_runs(panel) == "difference: frame 0 (moment 0) − frame 1 (moment 1)"
    title = window.windowTitle()  # both are named by their index, as everywhere in the window
    assert title.endswith("frame 0 of 0–2 (moment 0) · compared with frame 1 of 0–2 (moment 1) — inspector")


@pytest.mark.parametrize("width", [1280, 1024])
def test_a_frame_is_named_whole_and_nothing_lies_over_another(
    window: Window, qtbot: Any, tmp_path: Path, width: int
) -> None:
    for name in ("a", "b"):
        capture_of(tmp_path / f"{name}.inspect", *(frame_of(n) for n in (1, 2)), steps=(0, 10))
    window.resize(width, 800)
    window.open_capture(str(tmp_path / "a.inspect"))
    alone = window.windowTitle()
    window.comparing.begin(str(tmp_path / "b.inspect"))
    bar = window.compare
    bar.offer(tmp_path / "b.inspect", (Frame(index=0, label="iteration 20"), Frame(index=1, label="iteration 3200")), 1,
              itself=False)  # fmt: skip
    qtbot.wait(100)
    boxes = [one for one in (bar.name, bar.frames, bar.way, bar.said, bar.all, bar.first, bar.end) if one.width()]
    for left, right in pairwise(boxes):
        assert left.geometry().right() < right.geometry().left()
    assert bar.name.text() == "With b.inspect" and bar.end.geometry().right() < bar.width()
    if width == 1280:
        room = bar.frames.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, _option(bar.frames), QStyle.SubControl.SC_ComboBoxEditField, bar.frames
        )
        assert bar.frames.fontMetrics().horizontalAdvance("frame 1: iteration 3200") <= room.width()
    assert "frame 1: iteration 3200" in bar.frames.toolTip()
    assert window.windowTitle() == alone.replace(" — ", " · compared with b.inspect frame 1 of 0–1 (moment 1) — ")
    window.comparing.end()
    assert window.windowTitle() == alone


def _option(box: QComboBox) -> QStyleOptionComboBox:
    option = QStyleOptionComboBox()
    box.initStyleOption(option)
    return option


def test_long_names_do_not_squeeze_the_bars_at_the_sides(window: Window, qtbot: Any, tmp_path: Path) -> None:
    path = tmp_path / ("a" * 90 + ".inspect")
    capture_of(path, *(frame_of(n) for n in (1, 2)), steps=(0, 10))
    window.resize(1280, 800)
    sides = [window.docks["open"], window.docks["numbers"]]
    window.open_capture(str(path))
    qtbot.wait(50)
    before = [dock.width() for dock in sides]
    named = Frame(index=0, label="checkpoint " + "b" * 90)
    for itself in (True, False):
        window.compare.offer(path, (named, Frame(index=1)), 0, itself=itself)
        qtbot.wait(50)
        assert window.compare.isVisible() and [dock.width() for dock in sides] == before, itself
    assert window.compare.name.text().endswith("…") and path.name in window.compare.name.toolTip()
    window.compare.hide()


def test_what_cannot_be_compared_is_said(
    window: Window, qtbot: Any, qapp: QApplication, runs: Path, tmp_path: Path
) -> None:
    capture_of(tmp_path / "one.inspect", frame_of(1))
    window.comparing.begin(str(runs / "late.inspect"))
    assert window.session.sentence == "Open or run something first, then compare it."
    window.open_capture(str(tmp_path / "one.inspect"))
    window.comparing.begin_frames()
    assert window.session.sentence == "one.inspect has one frame; choose another capture to compare it with."
    window.comparing.begin(str(tmp_path / "none.inspect"))
    assert "There is no capture" in window.session.sentence and not window.compare.isVisible()
    window.comparing.begin(str(runs / "late.inspect"))
    assert "cannot be compared" in window.compare.said.whole
    panel = window.panels["states"]
    reason = f"{STATES}: It has the unit '1' in late.inspect, and 'mV' in one.inspect."
    assert panel.state == "empty" and reason in panel._empty.text()
    assert panel._empty.button.isHidden() and panel._empty.text().endswith(
        "Side by side shows what each of the two runs has."
    )
    choose(window, SIDES)
    qtbot.waitUntil(lambda: "states" in window.comparing.beside.twins)
    assert panel.state == "figure" and window.comparing.beside.twins["states"].panel_at_left.state == "figure"
    choose(window, CHANGE)
    assert window.comparing.pair.refused[STATES] == ("It has the unit '1' in late.inspect, and 'mV' in one.inspect.")


def test_the_other_capture_may_still_be_written(window: Window, qtbot: Any, tmp_path: Path) -> None:
    arrays = frame_of(1)
    capture_of(tmp_path / "a.inspect", frame_of(2))
    with Writer(tmp_path / "b.inspect", START) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple("abcdef"), 0))
        writer.write(STATE)
        writer.write(Page(STATE.name, 0, (0, 0), arrays[STATE.name][:6]))
        writer.flush()
        window.open_capture(str(tmp_path / "a.inspect"))
        window.comparing.begin(str(tmp_path / "b.inspect"))
        qtbot.wait(50)
        assert int(window.panels.source.known(STATE.name).sum()) == 6 * 3
        writer.write(Labels("step", tuple("ghijkl"), 0, 6))
        writer.write(Page(STATE.name, 0, (6, 0), arrays[STATE.name][6:]))
        writer.write(RunStop("done"))
    qtbot.waitUntil(lambda: int(window.panels.source.known(STATE.name).sum()) == 12 * 3, timeout=5_000)
    wanted = frame_of(2)[STATE.name] - arrays[STATE.name]
    pane = window.comparison
    relative = np.linalg.norm(wanted.astype(float)) / np.linalg.norm(arrays[STATE.name].astype(float))
    qtbot.waitUntil(lambda: pane.table.item(0, 1) is not None and pane.table.item(0, 1).text() == f"{relative:.3g}",
                    timeout=10_000)  # fmt: skip
    qtbot.waitUntil(lambda: np.array_equal(window.panels["states"].data()[STATE.name], wanted), timeout=5_000)


def test_a_comparison_goes_on_with_another_capture_and_ends_with_the_window(
    window: Window, qtbot: Any, runs: Path
) -> None:
    compared(window, qtbot, runs, "early")
    other = window.comparing.other.capture
    window.open_capture(str(runs / "other.inspect"))
    assert window.comparing.pair is not None and [side.name for side in window.comparing.pair.sides] == [
        "early.inspect",
        "other.inspect",
    ]
    window.comparing.end()
    with pytest.raises(inspector.capture.CaptureError, match="is closed"):
        other.refresh()


def test_the_words_of_the_bar_are_not_below_its_fields(qtbot: Any, qapp: QApplication) -> None:
    bar = CompareBar()
    qtbot.addWidget(bar)
    frames = (Frame(index=0, label="a 3"), Frame(index=1, label="encoder.layers.0.self_attn:head[0]=0@0:"))
    bar.resize(820, 40)
    bar.offer(Path("a.inspect"), frames, 0, itself=True)
    bar.tell("21 channels compared, 8 one run at a time", ())
    qapp.processEvents()
    assert bar.name.text() == WORDS and bar.name.geometry().right() < bar.frames.geometry().left()
