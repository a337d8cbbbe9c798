"""A panel that is behind others in its tabs is not drawn: what has changed is drawn when it is on screen again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDockWidget

from inspector.gui.panel.key_moves import KeyMoves
from inspector.gui.widgets.theme import Theme, repolish

TURN_MS = 1
"""With 0 Qt would post an event, which comes before those of keys, mouse and timers."""
MOST_SLICES = 60
"""For which a picture waits at most: a second of reading."""


class DrawnWhenSeen(KeyMoves):
    """`on_screen` is told by the window: Qt moves docks behind others out of it, and still calls them visible."""

    on_screen = True
    """Always, where no window says otherwise."""
    stale = False
    """Whether something has changed since it was drawn."""
    _in_turn = False
    """Whether it is on screen, and drawn after the events that have come."""
    _slices = 0
    """How many slices are read at most before it is drawn, however much is still to be read."""

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
        """It has come on screen, or is behind others: steps in view and cursor may move until it is seen again. What
        takes long to read or to draw is drawn in its turn."""
        if on_screen and self._in_turn:
            return  # it comes
        if on_screen and self.stale and not self.on_screen and self.takes_long():
            self.show_nothing_of_another()
            self.draw_in_turn()
            return
        self._come(on_screen)

    def _come(self, on_screen: bool) -> None:
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

    def takes_long(self) -> bool:
        """Whether what is drawn next is drawn in its turn, and not with the tabs that are laid out when it is seen."""
        return self.has_much_to_read()

    def has_much_to_read(self) -> bool:
        """Whether what is drawn next has to be read first, which takes as long as a window may answer nothing."""
        return False

    def show_nothing_of_another(self) -> None:
        """Until it is drawn no picture of another capture is seen."""

    def read_some(self) -> bool:
        """Read a part of what is drawn next, for a few milliseconds; returns whether that was the last one."""
        return True

    def draw_in_turn(self, place: int = 0) -> None:
        """It is on screen, and what it shows next is read in slices, drawn and painted, with the events that have come
        before each of these, since together they take as long as a window may answer nothing; with several panels one
        after the other."""
        self._in_turn, self.on_screen = True, False
        self._slices = MOST_SLICES
        QTimer.singleShot(TURN_MS + place, self, self._take_turn)

    @property
    def waits_for_its_turn(self) -> bool:
        """Whether it is on screen and will be drawn after the events that have come, or after what it reads first."""
        return self._in_turn

    def take_turn_now(self) -> None:
        """Draw what waits for its turn: somebody asks what is shown, or asks something of it."""
        if self._in_turn:
            self._come(on_screen=True)

    def _take_turn(self) -> None:
        if not self._in_turn:
            return
        self._slices -= 1
        if not self.read_some() and self._slices > 0:
            QTimer.singleShot(TURN_MS, self, self._take_turn)
            return
        self.setUpdatesEnabled(False)
        QTimer.singleShot(TURN_MS, self, lambda: self.setUpdatesEnabled(True))
        self._come(on_screen=True)


@contextmanager
def drawn_once(panels: Iterable[DrawnWhenSeen]) -> Iterator[None]:
    """What changes inside is drawn at the end, once, by those that are on screen and do not wait for their turn."""
    held = [panel for panel in panels if panel.on_screen]
    for panel in held:
        panel.say_on_screen(False)
        panel.stale = False
    try:
        yield
    finally:
        for panel in held:
            panel.say_on_screen(True)
