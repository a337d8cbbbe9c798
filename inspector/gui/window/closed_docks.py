"""Docks that the user closed, so that the last one can be had back where it was."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget

from inspector.gui.window.docks import Docking

KEY = "Ctrl+Shift+T"
"""As browsers have it for a closed tab."""


class ClosedDocks(QObject):
    """Which docks were closed, by their button or in the menu, the last one last.

    A dock that is hidden because another one fills the window gets no close event, so it is not one of them. Qt keeps
    the place of a hidden dock, in its tabs or as a window of its own.
    """

    def __init__(self, docking: Docking, say: Callable[[str], None], action: QAction) -> None:
        super().__init__(docking.window)
        self._docking, self._say = docking, say
        self._action = action
        """Enabled while there is one."""
        self._closed: list[str] = []
        self._keys = {dock: key for key, dock in docking.docks.items()}
        for dock in self._keys:
            dock.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note what is closed, and what is shown again in any way."""
        if event.type() in (QEvent.Type.Close, QEvent.Type.Show) and isinstance(watched, QDockWidget):
            self._noted(watched, closed=event.type() == QEvent.Type.Close)
        return False

    def _noted(self, dock: QDockWidget, *, closed: bool) -> None:
        if (window := dock.window()) is not dock and not window.isVisible():
            return  # the whole window is closing, or is not there yet
        key = self._keys[dock]
        self._closed = [one for one in self._closed if one != key] + [key] * closed
        if closed:
            self._say(f"{dock.windowTitle()} is closed; {KEY} brings it back.")
        self._action.setEnabled(bool(self._closed))

    def reopen(self) -> None:
        """Show the dock that was closed last where it was, in front."""
        while self._closed:
            key = self._closed.pop()
            if self._docking.docks[key].isHidden():
                self._docking.show_panel(key)
                break
        self._action.setEnabled(bool(self._closed))
