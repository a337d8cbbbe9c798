"""A panel that is behind others in its tabs is not drawn: what has changed is drawn when it is on screen again."""

from __future__ import annotations

from PySide6.QtCore import QTimer

from inspector.gui.panel.key_moves import KeyMoves

TURN_MS = 1
"""With 0 Qt would post an event, which comes before those of keys, mouse and timers."""


class DrawnWhenSeen(KeyMoves):
    """`on_screen` is told by the window: Qt moves docks behind others out of it, and still calls them visible."""

    on_screen = True
    """Always, where no window says otherwise."""
    stale = False
    """Whether something has changed since it was drawn."""
    _in_turn = False
    """Whether it is on screen, and drawn after the events that have come."""

    def redraw(self) -> None:
        """Draw the capture as it is now; clears `stale`."""
        raise NotImplementedError

    def draw_if_seen(self) -> None:
        """Draw now, or as soon as it is on screen."""
        if self.on_screen:
            self.redraw()
        else:
            self.stale = True

    def in_sight(self) -> bool:
        """Whether steps that have come into view are drawn now; behind others they are as soon as it is on screen."""
        self.stale |= not self.on_screen
        return self.on_screen

    def say_on_screen(self, on_screen: bool) -> None:
        """It has come on screen, or is behind others: steps in view and cursor may move until it is seen again."""
        self._in_turn = False
        before, self.on_screen = self.on_screen, on_screen
        if not on_screen:
            self.stale |= before
        elif self.stale:
            self.redraw()

    def draw_in_turn(self, place: int = 0) -> None:
        """It is on screen, and what it shows next is drawn after the events that have come, since what was done before
        took as long as a window may answer nothing; with several panels one after the other."""
        self._in_turn, self.on_screen = True, False
        QTimer.singleShot(TURN_MS + place, self, lambda: self.say_on_screen(True) if self._in_turn else None)
