"""Docks that the user closed, so that the last one can be had back where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QDockWidget

from inspector.gui.window.docking.dock_title import REOPEN
from inspector.gui.window.docking.docks import Docking


class ClosedDocks(QObject):
    """Which docks were closed, by their button or in the menu, the last one last; `there` says whether there is one.

    A dock that is hidden because another one fills the window gets no close event, so it is not one of them. Qt keeps
    the place of a hidden dock, in its tabs or as a window of its own.
    """

    there = Signal(bool)

    def __init__(self, docking: Docking, say: Callable[[str], None]) -> None:
        super().__init__(docking.window)
        self._docking, self._say = docking, say
        self._closed: list[str] = []
        self._keys: dict[QDockWidget, str] = {}

    def watch(self, docks: Mapping[str, QDockWidget]) -> None:
        """All docks, once they are there."""
        self._keys = {dock: key for key, dock in docks.items()}
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
            self._say(f"{dock.windowTitle()} is closed; {REOPEN} brings it back.")
        self.there.emit(bool(self._closed))

    def reopen(self) -> None:
        """Show the dock that was closed last where it was, in front."""
        while self._closed:
            key = self._closed.pop()
            if self._docking.docks[key].isHidden():
                self._docking.show_panel(key)
                self._say(f"{self._docking.docks[key].windowTitle()} is back.")
                break
        self.there.emit(bool(self._closed))
