"""Matches of what a person looks for in a sequence, marked on the strip and on every plot over its steps."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.records import STEP_DOMAIN

Ranges = tuple[tuple[int, int], ...]


class Asked(QObject):
    """The matches of a window: ranges of steps, (first, last) each, on one axis."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.ranges: Ranges = ()
        self.axis = STEP_DOMAIN

    def show(self, ranges: Ranges, axis: str = STEP_DOMAIN) -> None:
        """Mark these, and no others."""
        if (ranges, axis) != (self.ranges, self.axis):
            self.ranges, self.axis = ranges, axis
            self.changed.emit()

    def along(self, axis: str) -> Ranges:
        """Those on an axis."""
        return self.ranges if axis == self.axis else ()


def asked_of(cursor: Cursor | Looking) -> Asked:
    """The matches that belong to a shared cursor; made on first request, and gone with it."""
    shared = cursor.cursor if isinstance(cursor, Looking) else cursor
    found = shared.findChild(Asked)
    return found if isinstance(found, Asked) else Asked(shared)
