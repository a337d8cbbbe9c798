"""What stays where it is: buttons of the status row beside texts that change, bars at the sides in a wider window."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import open_capture
from inspector.gui.dialogs.spike_dialog import SpikeDialog
from inspector.gui.window.docking.side_widths import NARROWEST, SQUEEZED
from inspector.gui.window.main_window import Window
from inspector.workspace.trainings import list_trainings


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made


@pytest.fixture(scope="module")
def training() -> Path:
    (found,) = [one.capture for one in list_trainings() if one.name == "training-spike"]
    return found


def test_buttons_of_the_status_row_stay_where_they_are(window: Window, training: Path, qapp: QApplication) -> None:
    window.open_capture(str(training))
    status = window.status
    status.controls.show_state(True)

    def places() -> list[QPoint]:
        qapp.processEvents()
        buttons = [*status.controls.buttons.values(), status.stop]
        return [button.mapTo(window, QPoint(0, 0)) for button in buttons]

    status.stop.show()
    before = places()
    status.training.setText("The training waits at iteration 123,456,789")
    status.elapsed.setText("12345.6 s")
    status.background.setText("in the background: jacobian/spectral_radius, 12 left")
    status.worker.setText("worker ended")
    status.restart.show()
    status.bar.show()
    assert places() == before
    status.controls.steering.condition = "loss > 3"
    status.controls.show_state(True)
    assert places() == before and status.controls.buttons["Pause when…"].text().endswith("●")
    status.controls.steering.condition = ""


def test_every_spike_of_the_list_can_be_read(window: Window, training: Path, qapp: QApplication) -> None:
    with open_capture(training) as capture:
        events = [one for one in capture.events if one.kind == "spike"]
        dialog = SpikeDialog(capture, events, set(), window)
        dialog.show()
        qapp.processEvents()
        metrics, view = dialog.list.fontMetrics(), dialog.list
        assert view.wordWrap() and len(events) > 2
        for n, event in enumerate(events):
            area = view.visualItemRect(view.item(n))
            lines = round(area.height() / metrics.height())
            assert area.width() <= view.viewport().width()
            assert metrics.horizontalAdvance(view.item(n).text()) < lines * area.width()
            assert html.escape(event.text) in view.item(n).toolTip()
        dialog.close()
        dialog.deleteLater()


def test_bars_that_were_squeezed_get_their_widths_again_and_chosen_ones_stay(window: Window, qtbot: Any) -> None:
    left, right = window.docks["open"], window.docks["numbers"]
    window.resize(window.minimumSizeHint().width(), 800)
    qtbot.waitUntil(lambda: left.width() <= SQUEEZED and right.width() <= SQUEEZED)
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: left.width() >= NARROWEST and right.width() >= 200)
    window.resizeDocks([left], [150], Qt.Orientation.Horizontal)
    qtbot.waitUntil(lambda: left.width() == 150)
    window.resize(1300, 800)
    qtbot.wait(50)
    assert left.width() == 150


def test_bars_have_their_widths_again_when_a_narrow_window_is_wide_again(window: Window, qtbot: Any) -> None:
    """They were squeezed to 150 pixels, a little more than the least, and stayed so."""
    left, right = window.docks["open"], window.docks["numbers"]
    window.resize(1380, 860)
    qtbot.wait(50)
    window.resizeDocks([left, right], [217, 270], Qt.Orientation.Horizontal)
    qtbot.waitUntil(lambda: (left.width(), right.width()) == (217, 270))
    for _ in range(2):
        for narrow in (960, 1100, 960):
            window.resize(narrow, 860)
            qtbot.wait(50)
        assert left.width() < 217 and right.width() < 270
        window.resize(1380, 860)
        qtbot.waitUntil(lambda: (left.width(), right.width()) == (217, 270))
