"""Which quantities the panels of a window that can be seen have drawn, for what tells their numbers."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.gui.state.step_ranges import belonging_to


class InSight(QObject):
    """Names of channels; none where no window says so (a figure that is drawn into a file), or nothing is drawn."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.names: frozenset[str] = frozenset()

    def show(self, names: frozenset[str]) -> None:
        """Those of now."""
        if names != self.names:
            self.names = names
            self.changed.emit()


def in_sight_of(cursor: Cursor | Looking) -> InSight:
    """That of a shared cursor; made on first request, and gone with it."""
    return belonging_to(cursor, InSight)
