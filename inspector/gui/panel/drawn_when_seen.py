"""A panel that is behind others in its tabs is not drawn: what has changed is drawn when it is on screen again."""

from __future__ import annotations

from inspector.gui.panel.key_moves import KeyMoves


class DrawnWhenSeen(KeyMoves):
    """`on_screen` is told by the window: Qt moves docks behind others out of it, and still calls them visible."""

    on_screen = True
    """Always, where no window says otherwise."""
    stale = False
    """Whether something has changed since it was drawn."""

    def redraw(self) -> None:
        """Draw the capture as it is now; clears `stale`."""
        raise NotImplementedError

    def draw_if_seen(self) -> None:
        """Draw now, or as soon as it is on screen."""
        if self.on_screen:
            self.redraw()
        else:
            self.stale = True

    def say_on_screen(self, on_screen: bool) -> None:
        """It has come on screen, or is behind others: steps in view and cursor may move until it is seen again."""
        before, self.on_screen = self.on_screen, on_screen
        if not on_screen:
            self.stale |= before
        elif self.stale:
            self.redraw()
