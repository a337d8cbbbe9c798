"""Where the panel on top of a group of tabs is empty, one that draws something comes to the top."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow

from inspector.gui.panel.drawn_when_seen import TURN_MS
from inspector.gui.panel.registry import PANELS

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

DONE = object()


class Arrangement(Protocol):
    """What is asked of the docks of a window (docks.py)."""

    window: QMainWindow
    docks: dict[str, QDockWidget]
    seen: set[str]
    enlarged: str

    @property
    def rows(self) -> Collection[str]:
        """Keys of the panels that are in rows of tabs."""

    @property
    def made(self) -> Mapping[str, Panel]:
        """The panels that have been made."""

    def panel_with_data(self, key: str) -> Panel | None:
        """A panel, made where it is not yet, of which the capture that is shown has something."""


class GivingWay:
    """Panels that give way, of one arrangement of docks. `page` is the panel that fills the window: none gives way to
    it."""

    def __init__(self, docking: Arrangement, page: str) -> None:
        self._docking, self._page = docking, page
        self._for: Callable[[], object] = lambda: None
        """The capture for which panels gave way, while there is one."""
        self._owed = False
        """Whether that was put off, since one panel filled the window."""
        self._coming: set[str] = set()
        """Empty panels on top whose numbers were being computed, or were to be, when the others gave way."""
        self.asked = ""
        """The panel that was asked for by its name last: it stays, and says why it has nothing to show."""

    def for_capture(self, capture: object) -> None:
        """Once for each capture, when its run has ended, with events between the panels; not when more was computed for
        it afterwards: what is empty then and on top was chosen by a person, who reads why."""
        if capture is None:
            return
        if self._for() is capture:
            self._settled()
            return
        self._for, self._owed, self.asked = weakref.ref(capture), bool(self._docking.enlarged), ""
        self._coming = set()
        if not self._owed:
            self._go_on(self.steps(frozenset(self._docking.seen)), self._for)

    def _settled(self) -> None:
        """What was to be computed for them did not come: a model without recurrence has no step Jacobians."""
        self._coming &= self._docking.seen - {self.asked}
        made = self._docking.made
        done = {key for key in self._coming if key in made and not _is_coming(made[key])}
        if done:
            self._coming -= done
            self._go_on(self.steps(frozenset(done)), self._for)

    def rows_are_back(self) -> None:
        """No panel fills the window any more: what was put off is done after the events that have come."""
        if self._owed:
            self._owed, of = False, self._for
            QTimer.singleShot(TURN_MS, self._docking.window, lambda: self._begin(of))

    def _begin(self, of: Callable[[], object]) -> None:
        if self._for is of:
            self._go_on(self.steps(frozenset(self._docking.seen - {self.asked})), of)

    def _go_on(self, steps: Iterator[None], of: Callable[[], object]) -> None:
        """The next of these steps after the events that have come, until there is none or another capture is shown."""

        def step() -> None:
            if self._for is of and next(steps, DONE) is not DONE:
                self._go_on(steps, of)

        QTimer.singleShot(TURN_MS, self._docking.window, step)

    def steps(self, seen: frozenset[str], *, at_once: bool = False) -> Iterator[None]:
        """Of the panels that were seen those that are empty give way, one that is drawn after the other.

        A panel of which what it offers was computed stays, and says why it has nothing to show. `at_once`: no events
        come between the steps, so that nothing is left to its turn.
        """
        for key, panel in self._docking.made.items():
            if key not in seen:
                continue
            if at_once:
                panel.take_turn_now()
            while panel.waits_for_its_turn:  # what it shows is read in slices, which would be read at once here
                yield
            if key not in self._docking.seen:  # another was asked for between two steps, or the page came to the front
                self._owed = self._owed or bool(self._docking.enlarged)
                continue
            if panel.stale:  # it still has the state of the capture before
                panel.redraw()
                yield
            if panel.state != "empty" or panel.computed or panel.remaining.sentence:
                if panel.state == "empty" and _is_coming(panel):
                    self._coming.add(key)
                continue
            panel.redraw()  # what cannot apply to the model is known only when its run has ended
            if panel.state == "empty" and not self._docking.docks[key].isFloating():
                yield from self._raise_beside(key)

    def _raise_beside(self, key: str) -> Iterator[None]:
        """The first panel in tabs beside one that draws something comes to the front, where there is one."""
        docking = self._docking
        keys = {docking.docks[key]: key for key in docking.rows if key != self._page}
        beside = [keys[dock] for dock in docking.window.tabifiedDockWidgets(docking.docks[key]) if dock in keys]
        drawing = [other for other in beside if not PANELS[other].asks_first]
        for other in sorted(drawing, key=lambda other: PANELS[other].forward_last):
            yield
            panel = docking.panel_with_data(other)
            if panel is None:
                continue
            panel.redraw()
            if panel.state == "figure":
                docking.docks[other].raise_()
                return


def _is_coming(panel: Panel) -> bool:
    """Whether numbers of this panel are computed without being asked for."""
    return bool(panel.remaining.present or panel.remaining.waiting)
