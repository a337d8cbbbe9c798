"""Logs of other tools in the window: opened, followed, several runs, what cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox

from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


def rows(count: int, first: int = 0, scale: float = 1.0) -> str:
    found = (
        {"step": n, "train/loss": scale / (n + 1), "val/loss": 2 * scale / (n + 1), "lr": 0.1} for n in range(count)
    )
    return "".join(json.dumps(row) + "\n" for n, row in enumerate(found) if n >= first)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shown(window: Window, qtbot: Any, path: Path) -> Any:
    window.open_path(str(path))
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=10_000)
    QTest.qWait(300)
    return window.panels["training"]


def boxes(qapp: QApplication) -> list[str]:
    return [w.text() for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]


def test_a_log_has_the_window_alone_and_is_followed(window: Window, qtbot: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", rows(50))
    panel = shown(window, qtbot, path)
    assert panel.state == "figure" and panel.groups == ("loss", "lr") and panel.isVisible()
    assert [name for _, name in panel.legends[0].entries] == ["train/loss", "val/loss"]
    assert not window.docks["states"].isVisible() and not window.runs.isVisible()
    assert window.status.training.text() == "This log is followed while it grows: iteration 49"
    assert window.session.sentence == "log.jsonl is shown." and str(path) in window.settings.recent()
    with path.open("a") as file:
        file.write(rows(80, 50))
    qtbot.waitUntil(lambda: panel.shown_plots[0].series[0].x[-1] == 79, timeout=5000)
    assert dict(panel.readout(panel.looking.position))["loss: train/loss [iteration 79]"] == "0.0125"


def test_runs_of_a_folder_are_drawn_together_or_one_is_chosen(window: Window, qtbot: Any, tmp_path: Path) -> None:
    for name, scale in (("fast", 1.0), ("slow", 3.0)):
        written(tmp_path / "runs" / name / "log.jsonl", rows(20, scale=scale))
    panel = shown(window, qtbot, tmp_path / "runs")
    assert window.runs.isVisible()
    assert [window.runs.box.itemText(n) for n in range(3)] == ["all runs together (2)", "fast", "slow"]
    assert panel.groups == ("loss", "lr")
    legend = [name for _, name in panel.legends[0].entries]
    assert legend == ["fast: train/loss", "fast: val/loss", "slow: train/loss", "slow: val/loss"]
    looks = [(one.colour, one.dashed) for one in panel.shown_plots[0].series]
    assert looks == [(0, False), (0, True), (1, False), (1, True)], "a colour for a run"
    assert [name for _, name in panel.legends[1].entries] == ["fast", "slow"]
    window.runs.box.setCurrentIndex(2)
    window.runs.box.activated.emit(2)
    QTest.qWait(300)
    assert panel.shown_plots[0].series[0].y[0] == 3.0 and panel.groups == ("loss", "lr")
    assert window.runs.box.currentText() == "slow" and "slow" in window.windowTitle()
    written(tmp_path / "runs" / "third" / "log.jsonl", rows(5))
    qtbot.waitUntil(lambda: window.runs.box.count() == 4, timeout=5000)
    assert window.runs.box.currentText() == "slow", "a new run does not change what is shown"


def test_a_log_is_dropped_on_the_window(window: Window, qtbot: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "metrics.csv", "step,loss\n0,2.5\n1,nan\n2,1.5\n")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPointF(5, 5), copy, data, left, none))
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=10_000)
    QTest.qWait(300)
    panel: Any = window.panels["training"]
    assert panel.shown[0].titleLabel.lines == ("loss (1 NaN)",)


def test_what_is_no_log_is_said_and_what_was_shown_stays(
    window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path
) -> None:
    panel = shown(window, qtbot, written(tmp_path / "log.jsonl", rows(5)))
    bad = written(tmp_path / "bad.jsonl", "no <b>log</b>\n")
    window.session.open_log(bad)
    qtbot.waitUntil(lambda: bool(boxes(qapp)), timeout=5000)
    assert "bad.jsonl" in boxes(qapp)[0]
    assert panel.shown_plots[0].series[0].x[-1] == 4 and window.session.reading is None


def test_reading_is_cancelled(window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", rows(5))
    window.session.open_log(path)
    window.session.cancel()
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=5000)
    QTest.qWait(50)
    assert not boxes(qapp) and window.session.capture is None
    assert window.session.sentence == "Reading log.jsonl was cancelled."


def test_a_capture_that_is_opened_meanwhile_stays(window: Window, qtbot: Any, tmp_path: Path, a_capture: Path) -> None:
    window.session.open_log(written(tmp_path / "log.jsonl", rows(5)))
    window.open_capture(str(a_capture))
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=5000)
    assert window.session.capture is not None and window.session.capture.path == a_capture


def test_a_log_is_not_saved_as_a_capture(window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path) -> None:
    from inspector.gui.window.menus import pack_as, save_as

    shown(window, qtbot, written(tmp_path / "a" / "log.jsonl", rows(5)).parent)
    for save in (save_as, pack_as):
        save(window)
        (said,) = boxes(qapp)
        assert said.startswith("This is a log that another tool wrote")
        next(w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()).close()


def test_another_capture_has_all_panels_again(window: Window, qtbot: Any, tmp_path: Path, a_capture: Path) -> None:
    shown(window, qtbot, written(tmp_path / "log.jsonl", rows(5)))
    window.open_capture(str(a_capture))
    QTest.qWait(100)
    assert window.docks["states"].isVisible() and not window.docking.enlarged
