"""F9 on a panel that was asked for by its name: that panel fills the window, and keeps the keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


def test_the_panel_is_not_hidden_for_a_moment(window: Window, qtbot: Any, a_capture: Path) -> None:
    """Qt hid and showed a dock that was told not to float: the focus went on to the panel in the tab beside it, which
    then was the one that filled the window."""
    window.open_path(str(a_capture))
    docking = window.docking
    docking.show_panel("lags")
    qtbot.waitUntil(lambda: "lags" in docking.seen and not docking.enlarged)
    inside = docking.place_of("lags")
    inside.setFocus()
    qtbot.waitUntil(lambda: docking.docks["lags"].isAncestorOf(QApplication.focusWidget()))
    gone: list[bool] = []
    docking.docks["lags"].visibilityChanged.connect(lambda seen: gone.append(seen) if not seen else None)
    docking.enlarge_front()
    qtbot.wait(100)
    assert docking.enlarged == "lags" and docking.seen == {"lags"} and not gone
    assert docking.docks["lags"].isAncestorOf(QApplication.focusWidget())
    docking.enlarge_front()
    qtbot.waitUntil(lambda: len(docking.seen) > 1)
    assert "lags" in docking.seen and not docking.enlarged


def test_one_that_floats_comes_back_to_fill_the_window(window: Window, qtbot: Any, a_capture: Path) -> None:
    window.open_path(str(a_capture))
    docking = window.docking
    docking.show_panel("lags")
    qtbot.waitUntil(lambda: "lags" in docking.seen and not docking.enlarged)
    docking.docks["lags"].setFloating(True)
    qtbot.wait(50)
    docking.enlarge("lags")
    assert not docking.docks["lags"].isFloating() and docking.enlarged == "lags"


class Painted(QObject):
    """Counts the paintings of what it is installed on."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """One more."""
        self.count += event.type() == QEvent.Type.Paint
        return False


def test_a_window_that_was_to_be_painted_as_its_rows_come_back_is_painted_from_then_on(
    window: Window, qtbot: Any, a_capture: Path
) -> None:
    """Qt forgets a painting that comes while a window takes none, and asks for no other: it stood still."""
    window.open_path(str(a_capture))
    window.docking.show_panel("lags")
    qtbot.waitUntil(lambda: "lags" in window.docking.seen and not window.docking.enlarged)
    window.docking.enlarge("lags")
    qtbot.wait(100)
    said, painted = window.status.sentence, Painted()
    said.installEventFilter(painted)
    window.update()
    window.docking.restore()
    qtbot.wait(100)
    painted.count = 0
    window.session.sentence = "Something else."
    window.show_state()
    qtbot.waitUntil(lambda: painted.count > 0, timeout=2_000)
    said.removeEventFilter(painted)
