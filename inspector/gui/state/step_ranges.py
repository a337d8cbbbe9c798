"""Ranges of steps on one axis that a window shares, and what belongs to its cursor."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.records import STEP_DOMAIN

Ranges = tuple[tuple[int, int], ...]
Belonging = TypeVar("Belonging", bound=QObject)


class StepRanges(QObject):
    """Ranges of steps, (first, last) each, on one axis."""

    changed = Signal()

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


def belonging_to(cursor: Cursor | Looking, kind: type[Belonging]) -> Belonging:
    """The one of a kind that belongs to a shared cursor; made on first request, and gone with it."""
    shared = cursor.cursor if isinstance(cursor, Looking) else cursor
    found = shared.findChild(kind)
    return found if isinstance(found, kind) else kind(shared)
