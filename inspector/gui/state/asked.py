"""Matches of what a person looks for in a sequence, marked on the strip and on every plot over its steps."""

from __future__ import annotations

from inspector.gui.state.cursor import Cursor, Looking
from inspector.gui.state.step_ranges import StepRanges, belonging_to


class Asked(StepRanges):
    """The matches of a window."""


def asked_of(cursor: Cursor | Looking) -> Asked:
    """The matches that belong to a shared cursor; made on first request, and gone with it."""
    return belonging_to(cursor, Asked)
