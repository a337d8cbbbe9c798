"""A window in which one panel filled everything goes on painting when the others come back, whatever was to be painted
at that moment: a quick click on a tab left the picture of before on screen for ever."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from tests.support.opened import opened


class Paintings(QObject):
    """Counts how often a widget is painted."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


def test_the_window_is_painted_after_the_rows_have_come_back(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        for key in ("states", "gates"):
            window.docking.show_panel(key)
            window.docking.enlarge(key)
            QApplication.processEvents()
            window.docks[key].update()  # what a click and the mouse over a tab ask for
            window.docking.restore()
            seen = Paintings()
            window.menuBar().installEventFilter(seen)
            window.menuBar().update()
            qtbot.waitUntil(lambda seen=seen: seen.count > 0, timeout=3000)
            window.menuBar().removeEventFilter(seen)
