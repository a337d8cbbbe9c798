"""The range of the numbers that a map has in view, for colours that follow zoom and pan: read from the cells that are
drawn, once the view stands still, a part after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QTimer, Signal

from inspector.gui.widgets.images.colour_choice import IN_VIEW
from inspector.gui.widgets.images.quantise import Levels, limits_of

Array = npt.NDArray[Any]
Ends = tuple[Array, Array]
"""Minima and maxima of cells, the same array where a cell is one number; what is not known is NaN."""
STILL_MS = 120
"""Milliseconds without zoom and pan before the range is read: colours that change under a moving hand flicker."""
TURN_SECONDS = 0.02
"""CPU time after which the window draws before more is read."""


class RangeInView(QObject):
    """Of one map. `changed()`: it is another one. `parts()` reads what is in view, a part at a time."""

    changed = Signal()

    def __init__(self, item: Any, parts: Callable[[], Iterator[Ends]]) -> None:
        super().__init__(item)
        self._item, self._parts = item, parts
        self.limits: tuple[float, float] | None = None
        """On the axis of the colours: logarithms where they go with them; None: no number is known yet, or is there."""
        self.followed = False
        """Whether a colour bar tells the range: what else is drawn over a map has none of its own."""
        self._known = False
        self._reading: Iterator[Ends] | None = None
        self._ends: tuple[float, float] | None = None
        self._still = QTimer(self, interval=STILL_MS, singleShot=True)
        self._still.timeout.connect(self._begin)
        self._more = QTimer(self, interval=0, singleShot=True)
        self._more.timeout.connect(self._go_on)

    @property
    def wanted(self) -> bool:
        """Whether the colours of this map follow what is in view."""
        choose = getattr(self._item.scene(), "colours", None) if self.followed else None
        return choose is not None and choose(self._item.given.scale).span == IN_VIEW

    def moved(self) -> None:
        """Another part is in view."""
        if self.wanted:
            self._known = False
            self._still.start()

    def others(self) -> None:
        """Other numbers, or more of them: those of a run that goes on come faster than a view stands still."""
        self._known = False
        if self.wanted and not self._still.isActive() and self._reading is None:
            self._still.start()

    def told(self, levels: Levels, *, at_once: bool = False) -> Levels:
        """Levels with the range, where it is wanted; `at_once`: a file is drawn, which waits for it."""
        if not self.wanted:
            return levels
        if at_once and not self._known:
            self.settle()
        elif not (self._known or self._still.isActive() or self._reading is not None):
            self._still.start()
        return levels.with_view(self.limits)

    def settle(self) -> None:
        """Read all of it now."""
        self._start()
        for ends in self._parts():
            self._add(ends)
        self._finish()

    def _start(self) -> None:
        self._still.stop()
        self._more.stop()
        self._reading, self._ends = None, None

    def _begin(self) -> None:
        self._start()
        self._reading = self._parts()
        self._go_on()

    def _go_on(self) -> None:
        end = time.thread_time() + TURN_SECONDS
        while self._reading is not None:
            ends = next(self._reading, None)
            if ends is None:
                self._finish()
                return
            self._add(ends)
            if time.thread_time() > end:
                self._more.start()
                return

    def _add(self, ends: Ends) -> None:
        """The least and the largest number, also of cells."""
        log = self._item.given.log
        low, high = (ends_of(one, log=log) for one in ends)
        if low is not None and high is not None:
            least, most = self._ends or (low[0], high[1])
            self._ends = min(least, low[0]), max(most, high[1])

    def _finish(self) -> None:
        before, self._reading, self._known = self.limits, None, True
        self.limits = limits_of(self._ends, self._item.given) if self._ends is not None else None
        if self.limits != before:
            self._item.update()
            self.changed.emit()


def ends_of(values: Array, *, log: bool) -> tuple[float, float] | None:
    """The least and the largest finite number; of those above 0 where colours go with the logarithm."""
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values) & (values > 0) if log else np.isfinite(values)
    if not known.any():
        return None
    return float(values.min(where=known, initial=np.inf)), float(values.max(where=known, initial=-np.inf))


def without_gaps(values: Array, rects: Any, corner: tuple[float, float], cell: tuple[float, float]) -> Array:
    """(row, column) numbers of cells of some size from a corner (x, y), NaN where a rectangle covers any of a cell:
    what is drawn there is no number."""
    if not rects:
        return values
    found = np.array(values, np.float64)
    rows, columns = found.shape
    for (left, right), (top, bottom) in rects:
        across = touched(left, right, corner[0], cell[0], columns)
        down = touched(top, bottom, corner[1], cell[1], rows)
        found[slice(*down), slice(*across)] = np.nan
    return found


def touched(first: float, stop: float, corner: float, cell: float, count: int) -> tuple[int, int]:
    """(first, stop) of the cells of some size from a corner that lie between two places, in whole or in part."""
    low, high = np.floor((first - corner) / cell + 1e-9), np.ceil((stop - corner) / cell - 1e-9)
    return int(np.clip(low, 0, count)), int(np.clip(high, 0, count))
