"""Where tabs of panels do not fit, a button lists all of their row; where they fit there is none."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.gui.window.docking.panel_tabs import NOTHING
from inspector.gui.window.docking.tab_lists import KIND
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec
from tests.support.opened import finish, opened


def seen_buttons(window: Window) -> set[str]:
    return {key for key, bar in window.docking.bars.items() if KIND in bar.buttons and bar.buttons[KIND].isVisible()}


def squeeze(window: Window, qtbot: Any, width: int) -> None:
    """The bar at the left made so wide, as by dragging its edge."""
    window.resizeDocks([window.docking.docks["open"]], [width], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    qtbot.wait(60)


@pytest.fixture
def run(qtbot: Any) -> Any:
    with opened(qtbot, background=False) as window:
        window.resize(1280, 800)
        window.open_sample("char-lstm", "", InputSpec(kind="text", value="Alice was beginning"))
        finish(window, qtbot)
        window.resize(1280, 800)
        window.docking.show_panel("states")
        qtbot.wait(100)
        yield window


def test_the_list_is_there_where_tabs_are_out_of_sight(run: Any, qtbot: Any) -> None:
    squeeze(run, qtbot, 560)
    assert {"states"} <= seen_buttons(run)
    squeeze(run, qtbot, 180)
    run.resize(2600, 800)
    qtbot.waitUntil(lambda: not seen_buttons(run), timeout=3000)
    run.resize(1280, 800)
    squeeze(run, qtbot, 560)
    assert "states" in seen_buttons(run)
    button = run.docking.bars["states"].buttons[KIND]
    assert button.toolTip() == "All panels of this row" and button.accessibleName() == "list: States"
    assert button.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_it_lists_every_tab_of_the_row_and_goes_there(run: Any, qtbot: Any) -> None:
    squeeze(run, qtbot, 560)
    tabs = run.docking.tabs
    own = next(bar for bar, _, key in tabs.each() if key == "states")
    menu = run.docking.lists.menu("states")
    titles = [action.text() for action in menu.actions() if action.isEnabled() and not action.isSeparator()]
    assert sorted(titles) == sorted(own.tabText(at) for at in range(own.count())) and len(titles) > 8
    heading = [action for action in menu.actions() if not action.isEnabled()]
    assert [one.text() for one in heading] == [NOTHING.capitalize()], "a line of its own, at which no arrow key stops"
    assert not heading[0].isSeparator(), "text of a separator begins left of the entries"
    split = menu.actions().index(heading[0])
    assert "Attention" in [action.text() for action in menu.actions()[split:]], "an LSTM has none"
    assert [action.text() for action in menu.actions() if action.isChecked()] == ["States"]
    gates = next(action for action in menu.actions() if action.text() == "Gates")
    gates.trigger()
    qtbot.waitUntil(lambda: "gates" in run.docking.seen, timeout=3000)
    qtbot.waitUntil(lambda: "gates" in seen_buttons(run), timeout=3000)
    run.docking.bars["gates"].buttons[KIND].click()
    shown = QApplication.activePopupWidget()
    assert shown is not None and [a.text() for a in shown.actions() if a.isChecked()] == ["Gates"]
    shown.close()


def test_a_panel_in_a_window_of_its_own_has_no_row(run: Any, qtbot: Any) -> None:
    squeeze(run, qtbot, 560)
    assert "states" in seen_buttons(run)
    run.docking.bars["states"].float()
    qtbot.waitUntil(lambda: "states" not in seen_buttons(run), timeout=3000)
    run.docking.bars["states"].float()
    qtbot.waitUntil(lambda: "states" in seen_buttons(run), timeout=3000)
