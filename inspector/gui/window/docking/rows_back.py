"""Rows of panels that come back once the overview is left: drawn after the events that have come, since to lay out the
docks takes as long as a window may answer nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel


class Rows(Protocol):
    """What is asked of the docks of a window (docks.py)."""

    seen: set[str]

    @property
    def made(self) -> Mapping[str, Panel]:
        """The panels that have been made."""

    def restore(self) -> None:
        """All panels again, if one was enlarged."""


class RowsBack:
    """Of one arrangement of docks."""

    def __init__(self, docking: Rows) -> None:
        self._docking = docking
        self._waiting: list[str] | None = None
        """Keys of panels that have come on screen while rows come back; None: they are drawn at once."""

    def restore(self) -> None:
        """All panels again; those of which something has changed meanwhile are drawn one after the other."""
        waiting: list[str] = []
        self._waiting = waiting
        try:
            self._docking.restore()
        finally:
            self._waiting = None
        for place, key in enumerate(key for key in dict.fromkeys(waiting) if key in self._docking.seen):
            self._docking.made[key].draw_in_turn(place)

    def takes(self, key: str, panel: Panel) -> bool:
        """Whether a panel that has come on screen is drawn when its turn comes."""
        if self._waiting is None or not panel.stale:
            return False
        self._waiting.append(key)
        return True
