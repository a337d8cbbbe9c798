"""How wide the bars at the sides of a window are: what is open and the model at the left, the numbers at the right."""

from __future__ import annotations

import re
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow

from inspector.gui.window.docking.side_docks import NARROWEST as NARROWEST_NUMBERS

NARROW = 1360
"""Width of a window below which the bars at the sides are narrower, so that all tabs are visible."""
NARROWEST, MOST_SHARE = 180, 0.19
"""Pixels of the left bar at least, and its part of the window's width at most."""
MOST_FOR_PINS = 0.3
"""Part of the window's width that the numbers under the cursor and at pins get at most."""
SQUEEZED = NARROWEST_NUMBERS + 4
"""Pixels of a bar that is as narrow as it can be, or hardly wider."""
_AS_TEXT = re.compile(r"(?P<width>\d{1,5})/(?P<then>\d{1,5})")
AFTER_MS = 50
"""Until rows of panels have the room that others have left."""


class Arrangement(Protocol):
    """What is asked of the docks of a window (docks.py)."""

    window: QMainWindow
    docks: dict[str, QDockWidget]
    enlarged: str


class SideWidths(QObject):
    """Of the two bars of an arrangement of docks."""

    def __init__(self, docking: Arrangement) -> None:
        super().__init__(docking.window)
        self._docking = docking
        self._settled = 0
        """Width of the window for which the bars have theirs; another one while they get them."""
        self._roomy: dict[QDockWidget, tuple[int, int]] = {}
        """(width, that of the window then) of each bar before a narrower window squeezed it."""
        self._given: dict[QDockWidget, int] = {}
        """Widths that they got back, of which Qt tells later."""
        self._without_pins = 0
        """Width of the bar at the right before pins needed a wider one; 0 where none does."""
        self._noted: list[tuple[QDockWidget, int]] = []
        """Widths before two runs were shown beside each other."""

    @property
    def bars(self) -> tuple[QDockWidget, QDockWidget]:
        """The bars at the left and at the right."""
        return self._docking.docks["open"], self._docking.docks["numbers"]

    @property
    def _there(self) -> list[QDockWidget]:
        return [dock for dock in self.bars if dock.isVisible() and not dock.isFloating()]

    def in_text(self) -> str:
        """The widths before a narrow window squeezed the bars, for the next start, whose window may be wide again."""
        return " ".join(f"{width}/{then}" for width, then in (self._roomy.get(dock, (0, 0)) for dock in self.bars))

    def take_text(self, text: str) -> None:
        """Widths of an earlier start; a text of another kind changes nothing."""
        found = [_AS_TEXT.fullmatch(one) for one in text.split(" ")]
        if len(found) == len(self.bars):
            for dock, one in zip(self.bars, found, strict=True):
                if one is not None and 0 < int(one["width"]) <= int(one["then"]):
                    self._roomy[dock] = int(one["width"]), int(one["then"])

    def _set(self, widths: list[tuple[QDockWidget, int]]) -> None:
        if widths:
            docks, pixels = zip(*widths, strict=True)
            self._docking.window.resizeDocks(list(docks), list(pixels), Qt.Orientation.Horizontal)

    def first(self) -> tuple[int, int]:
        """In a window of this width, while nobody has chosen others."""
        width, wanted = self._docking.window.width(), self.bars[0].widget().sizeHint().width()  # names are not cut
        return max(NARROWEST, min(wanted, int(MOST_SHARE * width))), 270 if width >= NARROW else 230

    def set_first(self) -> None:
        """As at the first start."""
        self._set(list(zip(self.bars, self.first(), strict=True)))

    def widen(self) -> None:
        """The window has another size: a narrow one, or a layout that was remembered of one, squeezes the bars at the
        sides, and Qt leaves them so when there is room again.

        They get the width back that they had, or its share of a window that is still narrower; those that are as
        narrow as they can be their first width. Counter-example: so does one that somebody made as narrow as that.
        """
        there, now = self._there, self._docking.window.width()
        wanted = {dock: width for dock, width in zip(self.bars, self.first(), strict=True) if dock.width() <= SQUEEZED}
        if now > self._settled:
            for dock, (width, then) in self._roomy.items():
                wanted[dock] = max(wanted.get(dock, 0), width * min(now, then) // then)
        self._given = {dock: width for dock, width in wanted.items() if dock in there and dock.width() < width}
        self._set(list(self._given.items()))
        if not self._settled:
            for dock in self.bars:
                dock.installEventFilter(self)
        self._settled = now
        for dock in there:
            width, (most, then) = self._given.get(dock, dock.width()), self._roomy.get(dock, (0, 0))
            if now >= then or width > most:
                self._roomy[dock] = width, now

    def eventFilter(self, dock: QObject, event: QEvent) -> bool:
        """A bar has another width, and the window has not: somebody has chosen it."""
        settled = self._docking.window.width() == self._settled
        if settled and isinstance(event, QResizeEvent) and isinstance(dock, QDockWidget) and dock in self._there:
            width = event.size().width()
            self._roomy |= {dock: (width, self._settled)} if width != self._given.get(dock) else {}
        return False

    def note(self) -> None:
        """What comes needs more room than there may be: the bars get theirs back afterwards."""
        if not self._noted:
            self._noted = [(dock, dock.width()) for dock in self._there]

    def give_back(self) -> None:
        """They are as wide as when they were noted, where they are narrower: Qt leaves them so."""
        noted, self._noted = self._noted, []
        QTimer.singleShot(AFTER_MS, self._docking.window, lambda: self._widen(noted))

    def _widen(self, noted: list[tuple[QDockWidget, int]]) -> None:
        there = self._there
        if not self._docking.enlarged:
            self._set([(dock, width) for dock, width in noted if dock in there and dock.width() < width])

    def make_room_for_pins(self, needed: int) -> None:
        """The bar at the right is as wide as columns of pins need, within a part of the window; without pins (0) it is
        as wide as it was before."""
        dock = self.bars[1]
        wanted = min(needed, int(MOST_FOR_PINS * self._docking.window.width()))
        if dock.isFloating() or not dock.isVisible() or (needed and wanted <= dock.width()):
            return
        if needed:
            self._without_pins = self._without_pins or dock.width()
        else:
            wanted, self._without_pins = self._without_pins, 0
        if wanted:
            self._set([(dock, wanted)])
