"""Several captures and logs in the Training panel: one axis, one colour a run, a baseline, the settings that differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QMessageBox
from several_runs import logged, watched

from inspector.gui.panel.over_iterations.baseline import DIFFERENCE, RATIO
from inspector.gui.window.main_window import Window

ONE, TWO = np.geomspace(5, 1, 20), np.geomspace(6, 0.1, 30)


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [
        str(watched(tmp_path / "a.inspect", ONE, settings={"lr": 0.1, "momentum": 0})),
        str(watched(tmp_path / "b.inspect", TWO, every=2, settings={"lr": 0.2, "momentum": 0})),
        str(logged(tmp_path / "log.jsonl", 12)),
    ]


def together(window: Window, qtbot: Any, paths: list[str]) -> Any:
    window.open_paths(paths)
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=10_000)
    qtbot.wait(200)
    return window.panels["training"]


def lines(panel: Any, title: str) -> dict[str, Any]:
    """The lines of a plot by their names."""
    plot = next(one for one in panel.shown_plots if one.plot.titleLabel.text.startswith(title))
    return {series.name: series for series in plot.series}


def test_their_losses_are_on_one_axis_each_in_a_colour(window: Window, qtbot: Any, paths: list[str]) -> None:
    panel = together(window, qtbot, paths)
    assert window.session.sentence == "3 runs are shown together."
    found = lines(panel, "loss")
    assert list(found) == ["a: loss", "b: loss", "log.jsonl: train/loss"]
    assert [one.colour for one in found.values()] == [0, 1, 2] and not any(one.dashed for one in found.values())
    np.testing.assert_array_equal(found["b: loss"].x, 2.0 * np.arange(30))
    np.testing.assert_array_equal(found["b: loss"].y, TWO)
    assert window.runs.box.itemText(0) == "all runs together (3)" and window.runs.isVisible()
    assert not any(one.baseline for one in found.values()) and not panel.baseline.way.isEnabled()


def test_settings_that_differ_are_a_table(window: Window, qtbot: Any, paths: list[str]) -> None:
    table = together(window, qtbot, paths).settings
    assert table.isVisible() and table.rowCount() == 3
    assert [table.horizontalHeaderItem(n).text() for n in range(3)] == ["run", "last loss", "optimizers.0.settings.lr"]

    def rows() -> list[list[str]]:
        return [[table.item(n, m).text() for m in range(3)] for n in range(3)]

    last = {"a": f"{ONE[-1]:.6g}", "b": f"{TWO[-1]:.6g}", "log.jsonl": f"{1 / 12:.6g}"}
    assert rows() == [["a", last["a"], "0.1"], ["b", last["b"], "0.2"], ["log.jsonl", last["log.jsonl"], "—"]]
    table.horizontalHeader().setSortIndicator(1, Qt.SortOrder.AscendingOrder)  # as a click on the heading does
    assert [row[0] for row in rows()] == ["log.jsonl", "b", "a"]
    window.panels["training"].redraw()
    assert [row[0] for row in rows()] == ["log.jsonl", "b", "a"], "what is drawn again stays sorted"
    panel = window.panels["training"]
    assert panel.area.height() + table.height() > 0.9 * table.parentWidget().height(), "and the plots have the rest"
    window.open_path(paths[0])
    assert not window.panels["training"].settings.isVisible()


def test_others_against_a_baseline_at_the_iterations_that_both_have(
    window: Window, qtbot: Any, paths: list[str]
) -> None:
    panel = together(window, qtbot, paths)
    panel.baseline.run.setCurrentIndex(panel.baseline.run.findData("a"))
    assert [one.baseline for one in lines(panel, "loss").values()] == [True, False, False]
    panel.baseline.way.setCurrentIndex(panel.baseline.way.findData(DIFFERENCE))
    found = lines(panel, "loss: difference to a")
    np.testing.assert_array_equal(found["b: loss"].x, np.arange(0, 20, 2.0))
    np.testing.assert_array_equal(found["b: loss"].y, TWO[:10] - ONE[::2])
    np.testing.assert_array_equal(found["a: loss"].y, np.zeros(20))
    panel.baseline.way.setCurrentIndex(panel.baseline.way.findData(RATIO))
    found = lines(panel, "loss: ratio to a")
    np.testing.assert_array_equal(found["log.jsonl: train/loss"].y, 1 / np.arange(1, 13) / ONE[:12])
    plot = next(one for one in panel.shown_plots if "ratio to a" in one.plot.titleLabel.text)
    assert plot.plot.getAxis("left").labelText == "×"


def test_runs_without_a_common_iteration_are_said(window: Window, qtbot: Any, tmp_path: Path) -> None:
    paths = [str(watched(tmp_path / f"{name}.inspect", ONE, every=2, first=n)) for n, name in enumerate("ab")]
    panel = together(window, qtbot, paths)
    panel.baseline.run.setCurrentIndex(panel.baseline.run.findData("b"))
    panel.baseline.way.setCurrentIndex(panel.baseline.way.findData(DIFFERENCE))
    assert list(lines(panel, "loss")) == ["a (no iteration in common)", "b"]


def test_dropping_several_or_adding_one_draws_them_together(window: Window, qtbot: Any, paths: list[str]) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths[:2]])
    window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
                                Qt.KeyboardModifier.NoModifier))  # fmt: skip
    qtbot.waitUntil(lambda: window.session.sentence == "2 runs are shown together.", timeout=10_000)
    window.add_run(paths[2])
    qtbot.waitUntil(lambda: window.session.sentence == "3 runs are shown together.", timeout=10_000)
    window.show_run("b")
    qtbot.wait(100)
    assert list(lines(window.panels["training"], "loss")) == ["b"]


def test_a_capture_that_is_shown_is_kept_when_a_run_is_added(window: Window, qtbot: Any, paths: list[str]) -> None:
    window.open_path(paths[0])
    window.add_run(paths[1])
    qtbot.waitUntil(lambda: window.session.sentence == "2 runs are shown together.", timeout=10_000)
    window.add_run(str(Path(paths[0]).parent))
    assert window.session.capture is not None


def test_what_has_no_curves_is_refused_and_what_cannot_be_read_is_said(
    window: Window, qtbot: Any, paths: list[str], tmp_path: Path
) -> None:
    window.open_path(paths[0])
    (tmp_path / "model.py").write_text("x = 1\n")
    window.add_run(str(tmp_path / "model.py"))
    assert "neither a capture nor a log" in window.session.sentence
    (tmp_path / "bad.inspect").mkdir()
    window.add_run(str(tmp_path / "bad.inspect"))
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=10_000)
    qtbot.wait(50)
    assert "bad.inspect" in window.session.sentence and window.session.capture is not None
    assert window.session.capture.path.name == "a.inspect"


def test_runs_that_grow_are_followed(window: Window, qtbot: Any, paths: list[str]) -> None:
    panel = together(window, qtbot, paths)
    logged(Path(paths[2]), 40)
    qtbot.waitUntil(lambda: len(lines(panel, "loss")["log.jsonl: train/loss"].x) == 40, timeout=10_000)
    np.testing.assert_array_equal(lines(panel, "loss")["log.jsonl: train/loss"].y, 1 / np.arange(1, 41))
    np.testing.assert_array_equal(lines(panel, "loss")["a: loss"].y, ONE)
