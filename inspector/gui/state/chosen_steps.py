"""A range of steps that a person has chosen, on a strip or by typing, for the table of it."""

from __future__ import annotations

from PySide6.QtCore import Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.gui.state.step_ranges import StepRanges, belonging_to


class ChosenSteps(StepRanges):
    """The ranges; `wanted()`: their table is to be shown."""

    wanted = Signal()


def chosen_of(cursor: Cursor | Looking) -> ChosenSteps:
    """The range that belongs to a shared cursor; made on first request, and gone with it."""
    return belonging_to(cursor, ChosenSteps)
