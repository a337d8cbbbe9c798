"""A range of steps that a person has chosen, on a strip or by typing, for the table of it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.records import STEP_DOMAIN

Ranges = tuple[tuple[int, int], ...]


class ChosenSteps(QObject):
    """Ranges of steps, (first, last) each, on one axis; `wanted()`: their table is to be shown."""

    changed = Signal()
    wanted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.ranges: Ranges = ()
        self.axis = STEP_DOMAIN

    def show(self, ranges: Ranges, axis: str = STEP_DOMAIN) -> None:
        """These, and no others."""
        if (ranges, axis) != (self.ranges, self.axis):
            self.ranges, self.axis = ranges, axis
            self.changed.emit()

    def along(self, axis: str) -> Ranges:
        """Those on an axis."""
        return self.ranges if axis == self.axis else ()


def chosen_of(cursor: Cursor | Looking) -> ChosenSteps:
    """The range that belongs to a shared cursor; made on first request, and gone with it."""
    shared = cursor.cursor if isinstance(cursor, Looking) else cursor
    found = shared.findChild(ChosenSteps)
    return found if isinstance(found, ChosenSteps) else ChosenSteps(shared)
