"""Other colours for a window: what is on screen has them at once, panels behind others one after the other.

With all panels made a change of everything at once would let the window answer nothing for a third of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QApplication, QMainWindow

from inspector.gui.widgets.theme import STYLE, Theme, repolish

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.docking.panels_on_demand import Panels

BETWEEN_MS = 5
"""Between two panels: what has been clicked or typed meanwhile comes first."""


class Dressing:
    """Gives a window and its panels the colours of a theme."""

    def __init__(self, window: QMainWindow, panels: Panels) -> None:
        self._window, self._panels = window, panels
        self._waiting: list[Panel] = []
        self._timer = QTimer(window, interval=BETWEEN_MS)
        self._timer.timeout.connect(self._next)

    def begin(self, theme: Theme) -> None:
        """Other colours from now on, also for what is made later."""
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        theme.apply(application)
        made = list(self._panels.made.values())
        self._waiting = [panel for panel in made if not panel.on_screen]
        if self._window.styleSheet():
            repolish(self._window, {panel.dock for panel in made if panel.dock is not None})
        else:
            self._window.setStyleSheet(STYLE)
        for panel in made:
            panel.dress(theme)
        self._timer.start()

    @Slot()
    def _next(self) -> None:
        if self._waiting:
            self._waiting.pop().dress_now()
        else:
            self._timer.stop()
