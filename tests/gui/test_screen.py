"""A window on a screen smaller than it would like, or than the one it was remembered on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from inspector.capture import Writer
from inspector.gui.app import begin, make_window
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.window.docking import screen
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, Page, RunStart, RunStop


@pytest.fixture
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QRect:
    """What is left of a screen beside its bars."""
    room = QRect(*getattr(request, "param", (0, 30, 1280, 770)))
    monkeypatch.setattr(screen, "room_of", lambda _window: room)
    return room


def stand(qtbot: object) -> Window:
    """A window begun, without a worker."""
    hooks = sys.excepthook
    made = make_window()
    qtbot.addWidget(made)
    made.choose_overview(on=False)
    made.session.start_worker = lambda: None
    made.show()
    QApplication.processEvents()
    begin(made, [], demo=False)
    sys.excepthook = hooks
    return made


@pytest.fixture
def window(qtbot: object, small: QRect) -> Iterator[Window]:
    made = stand(qtbot)
    yield made
    made.close()
    qInstallMessageHandler(None)


def where(widget: QWidget) -> QRect:
    return QRect(widget.mapToGlobal(QPoint(0, 0)), widget.size())


@pytest.mark.parametrize("small", [(0, 30, 1280, 770), (0, 0, 1024, 700), (1920, 40, 1366, 728)], indirect=True)
def test_all_that_is_pressed_and_read_is_on_the_screen(
    window: Window, small: QRect, qtbot: object, a_capture: Path
) -> None:
    window.open_capture(str(a_capture))
    window.session.sentence = "a sentence that does not end " * 40
    window.session.running = True
    window.show_state()
    qtbot.wait(100)
    assert small.contains(window.frameGeometry())
    for widget in (
        window.input.go, window.sequence.colour_by, window.readout, window.status.stop, window.status.worker,
        window.docks["states"], window.docks["jacobians"],
    ):  # fmt: skip
        assert widget.isVisible() and small.contains(where(widget)), widget
    assert window.status.sentence.text().endswith("…") and "does not end" in window.status.sentence.toolTip()
    window.session.running = False


def test_nothing_makes_the_window_wider_than_a_small_screen(window: Window, qtbot: object, tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for frame in (0, 1):
            writer.write(Frame(index=frame, label="a label that does not end " * 20))
            writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(9, 3)))
            writer.write(Page("rnn:h", frame, (0, 0), np.zeros((9, 3), np.float32)))
        writer.write(RunStop("done"))
    window.open_capture(str(tmp_path / "a.inspect"))
    window.fail("a sentence that does not end " * 40)
    for box in QApplication.topLevelWidgets():
        if box is not window and box.isVisible():
            assert box.width() <= 1280
            box.close()
    assert not window.frames.isHidden()
    assert window.minimumSizeHint().width() <= 1024 and window.minimumSizeHint().height() <= 640


def test_a_geometry_of_a_larger_screen_is_made_to_fit(
    qtbot: object, small: QRect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as large:
        large.setattr(screen, "room_of", lambda _window: QRect(0, 0, 3840, 2160))
        first = stand(qtbot)
        assert first.size() == screen.WANTED
        first.resize(3000, 1800)
        first.move(700, 300)
        first.docking.enlarge("states")
        first.close()
    again = stand(qtbot)
    assert small.contains(again.frameGeometry())
    again.close()
    qInstallMessageHandler(None)


def test_a_large_screen_gives_the_size_that_is_wanted(qtbot: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "room_of", lambda _window: QRect(0, 0, 2560, 1400))
    made = stand(qtbot)
    assert made.size() == QSize(1440, 900)
    made.close()
    qInstallMessageHandler(None)


def test_names_of_samples_are_read_whole_and_what_is_cut_differs(window: Window, qtbot: object) -> None:
    names = window.opener
    assert names.viewport().width() >= names.sizeHintForColumn(0), "at 1280 pixels there is room for them"
    assert names.textElideMode() == Qt.TextElideMode.ElideMiddle, "those that begin alike differ at their ends"
    item = names.topLevelItem(0).child(0)
    assert item.text(0).split()[-1] in item.toolTip(0)


def test_the_list_of_what_opens_stays_as_it_is_when_something_is_opened(window: Window, a_capture: Path) -> None:
    names = window.opener
    trainings = names.topLevelItem(0)
    trainings.setExpanded(False)
    names.setCurrentItem(trainings)
    for _ in range(2):
        window.open_capture(str(a_capture))
        assert names.topLevelItem(0) is trainings and not trainings.isExpanded()
        assert names.currentItem() is trainings
        titles = [names.topLevelItem(i).text(0) for i in range(names.topLevelItemCount())]
        assert titles == ["Recorded trainings", "Samples", "Recent"]
        assert [names.topLevelItem(2).child(i).text(0) for i in range(names.topLevelItem(2).childCount())] == [
            "a.inspect"
        ]


def test_a_dock_can_be_narrow_whatever_its_controls_are(window: Window, a_capture: Path) -> None:
    window.open_capture(str(a_capture))
    for key, dock in window.docks.items():
        assert dock.titleBarWidget().minimumSizeHint().width() == 120, key


@pytest.mark.parametrize("damaged", [False, True])
def test_attention_is_seen_whole(window: Window, qtbot: object, a_capture: Path, damaged: bool) -> None:
    window.open_capture(str(a_capture))
    window.docks["attention"].raise_()
    panel = window.panels["attention"]
    if damaged:
        for line in (window.damage, panel.findChild(CutLabel)):
            line.show()
    qtbot.wait(100)
    area = panel.stack.widget(1)
    assert isinstance(area, QScrollArea) and not area.verticalScrollBar().isVisible()
