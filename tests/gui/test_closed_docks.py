"""A dock that was closed comes back where it was: in its tabs, or as a window of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QApplication

from inspector.gui.window.docking.dock_title import within_reach
from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


def close(window: Window, key: str) -> None:
    bar: Any = window.docks[key].titleBarWidget()
    bar.buttons["close"].click()
    QApplication.processEvents()


def reopen(window: Window) -> None:
    window.findChild(object, "action-reopenclosedpanel").trigger()
    QApplication.processEvents()


def beside(window: Window, key: str) -> set[str]:
    return {dock.objectName() for dock in window.tabifiedDockWidgets(window.docks[key])}


def test_the_last_one_first_each_in_its_tabs_and_in_front(window: Window) -> None:
    action: Any = window.findChild(object, "action-reopenclosedpanel")
    assert not action.isEnabled() and action.shortcut().toString() == "Ctrl+Shift+T"
    before = {key: beside(window, key) for key in ("lags", "gates")}
    assert all(before.values())
    close(window, "lags")
    assert "Lags is closed; Ctrl+Shift+T brings it back." in window.session.sentence
    close(window, "gates")
    assert window.docks["lags"].isHidden() and window.docks["gates"].isHidden() and action.isEnabled()
    reopen(window)
    assert not window.docks["gates"].isHidden() and window.docks["lags"].isHidden() and "gates" in window.docking.seen
    reopen(window)
    assert {key: beside(window, key) for key in before} == before and "lags" in window.docking.seen
    assert "Lags is back." in window.session.sentence and "is closed" not in window.session.sentence
    assert not action.isEnabled()
    reopen(window)  # nothing more


def test_one_that_floated_floats_again_where_it_was(window: Window) -> None:
    dock: Any = window.docks["states"]
    dock.titleBarWidget().float()
    dock.move(40, 60)
    QApplication.processEvents()
    place = dock.pos()
    close(window, "states")
    reopen(window)
    assert dock.isFloating() and dock.isVisible() and dock.pos() == place
    dock.setFloating(False)  # no window is left


def test_a_window_of_its_own_is_seen_to_be_one_and_goes_and_comes_to_where_it_was(window: Window) -> None:
    dock: Any = window.docks["lags"]
    bar, before = dock.titleBarWidget(), beside(window, "lags")
    window.docking.show_panel("bptt")
    bar.buttons["float"].click()
    QApplication.processEvents()
    assert bar.title.isVisible() and bar.frame.isVisible() and bar.frame.geometry() == dock.rect()
    edge = dock.grab().toImage()
    assert edge.pixelColor(0, dock.height() // 2).name() == bar.theme.muted
    assert bar.buttons["float"].toolTip() == "Back into the window"
    dock.resize(500, 300)
    dock.move(30, 50)
    QApplication.processEvents()
    place = dock.geometry()
    assert bar.frame.geometry() == dock.rect()
    bar.buttons["float"].click()
    QApplication.processEvents()
    assert beside(window, "lags") == before and "lags" in window.docking.seen and bar.frame.isHidden()
    bar.buttons["float"].click()
    QApplication.processEvents()
    assert dock.geometry() == place  # not a step further each time
    bar.buttons["float"].click()


def test_a_place_beyond_the_screen_is_brought_within_reach() -> None:
    room, size = QRect(0, 30, 1280, 770), QSize(900, 350)
    for (x, y), (left, top) in {
        (-502, 40): (-502, 40), (-1000, -20): (-780, 30), (1500, 900): (1160, 680), (100, 100): (100, 100),
    }.items():  # fmt: skip
        assert within_reach(QRect(QPoint(x, y), size), room) == QRect(QPoint(left, top), size)


def test_what_another_way_shows_again_is_not_closed_any_more(window: Window) -> None:
    action: Any = window.findChild(object, "action-reopenclosedpanel")
    window.docks["lags"].toggleViewAction().trigger()
    assert action.isEnabled()
    window.docks["lags"].toggleViewAction().trigger()
    QApplication.processEvents()
    assert not window.docks["lags"].isHidden() and not action.isEnabled()


def test_docks_that_give_way_to_a_large_one_were_not_closed(window: Window) -> None:
    action: Any = window.findChild(object, "action-reopenclosedpanel")
    window.docking.enlarge("states")
    QApplication.processEvents()
    assert window.docks["lags"].isHidden() and not action.isEnabled()
    window.docking.restore()
    QApplication.processEvents()
    assert not action.isEnabled()
