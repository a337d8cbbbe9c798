"""A panel that is behind others in its tabs is not drawn: what has changed is drawn when it is on screen again."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDockWidget

from inspector.gui.panel.key_moves import KeyMoves
from inspector.gui.widgets.theme import Theme, repolish

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

    _undressed: Theme | None = None
    """The colours that it was given and does not have yet."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours, at once."""
        raise NotImplementedError

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
            return
        self.dress_now()
        if self.stale:
            self.redraw()

    def dress(self, theme: Theme) -> None:
        """Other colours: at once, or behind others as soon as it is on screen, asked for or `dress_now` is called."""
        self._undressed = theme
        if self.on_screen:
            self.dress_now()

    def dress_now(self) -> None:
        """The colours that it was given while it was behind others, if it was."""
        theme, self._undressed = self._undressed, None
        if theme is not None:
            repolish(self.dock or self)
            self.set_theme(theme)

    @property
    def dock(self) -> QDockWidget | None:
        """The dock that holds it, with its bar of controls."""
        held = self.parentWidget()
        while held is not None and not isinstance(held, QDockWidget):
            held = held.parentWidget()
        return held

    def draw_in_turn(self, place: int = 0) -> None:
        """It is on screen, and what it shows next is drawn after the events that have come, since what was done before
        took as long as a window may answer nothing; with several panels one after the other."""
        self._in_turn, self.on_screen = True, False
        QTimer.singleShot(TURN_MS + place, self, lambda: self.say_on_screen(True) if self._in_turn else None)
