"""Everything by its name, and the keys: both come from the actions themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opened import opened
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication

from inspector.gui.dialogs.dialogs import Palette, keys_of
from inspector.gui.window.main_window import Window
from inspector.records import Catalog, Entry, Option


@pytest.fixture
def window(qtbot: object, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot) as made:
        entry = Entry(key="bptt", summary="itemise & truncate", options=(Option(name="most", type="int", default=3),))
        made.offer(Catalog(torch="2", threads=1, devices=("cpu",), quantities=(entry,)))
        yield made


def found(window: Window, text: str) -> list[str]:
    palette = Palette(window.menu_actions, window)
    palette.line.setText(text)
    names = [palette.list.item(i).text() for i in range(palette.list.count())]
    palette.deleteLater()
    return names


def test_everything_is_found_by_the_name_that_a_person_has_for_it(window: Window) -> None:
    assert found(window, "theme") == ["Theme: Auto", "Theme: Light", "Theme: Dark"]
    assert found(window, "show log") == ["Show Log"] and "Show Gates" in found(window, "gates")
    assert found(window, "also bptt") == ["Compute also bptt: itemise & truncate", "Compute also bptt: options"]


def test_the_log_is_shown_and_never_hidden_by_its_name(window: Window, qapp: QApplication) -> None:
    for _ in range(2):
        palette = Palette(window.menu_actions, window)
        palette.line.setText("show log")
        palette.line.returnPressed.emit()
        assert not window.docks["log"].isHidden()


def test_where_nothing_has_that_name_the_list_says_so_and_enter_does_nothing(window: Window) -> None:
    assert found(window, "no such thing") == ["Nothing of that name"]
    palette = Palette(window.menu_actions, window)
    palette.show()
    palette.line.setText("no such thing")
    palette.line.returnPressed.emit()
    assert palette.isVisible()
    palette.close()


def test_a_long_name_makes_no_scroll_bar(window: Window, qapp: QApplication) -> None:
    long = QAction("a name " * 40, window)
    palette = Palette([long], window)
    palette.show()
    qapp.processEvents()
    assert not palette.list.horizontalScrollBar().isVisible() and palette.list.item(0).toolTip()
    palette.close()


def test_every_key_of_every_action_is_listed(window: Window) -> None:
    listed = dict(keys_of(window.menu_actions))
    keys = {action.shortcut().toString() for action in window.menu_actions} - {""}
    assert keys <= set(listed) and {"Ctrl+E", "F11", "F5", "Esc"} <= keys
    for standard in (QKeySequence.StandardKey.ZoomIn, QKeySequence.StandardKey.Close, QKeySequence.StandardKey.Open):
        assert QKeySequence(standard).toString() in listed
    assert listed["F5"] == "Run again, or what was typed" and "Home, End" in listed
