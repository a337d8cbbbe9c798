"""The numbers of single units of a long state: short ones at once, long ones in parts beside the window.

One unit of a million steps lies in as many rows; reading it takes a third of a second, in which a window would stand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QTimer, Signal

from inspector.gui.state.side_reader import SideReader, Task
from inspector.gui.widgets.plots.source import drawable
from inspector.records import Channel

Array = npt.NDArray[Any]
PART = 1 << 16
"""Steps that are read at once."""
POLL = 30
"""Milliseconds between two looks whether there is more."""
KEPT = 16
"""Units whose numbers are kept, those that were shown last."""
Key = tuple[str, int, int]
"""(channel, frame, unit)."""


class LongTraces(QObject):
    """The units of one capture at a time. `values` has NaN where nothing is read yet; `more` when more of them is there
    than there was."""

    more = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.reader = SideReader()
        self._poll = QTimer(self, interval=POLL)
        self._poll.timeout.connect(self._look)
        parent.destroyed.connect(self.reader.close)
        self._known: OrderedDict[Key, tuple[Any, Array]] = OrderedDict()

    def _look(self) -> None:
        """Whether more was read."""
        if not self.reader.busy:
            self._poll.stop()
        if self.reader.news():
            self.more.emit()

    def complete(self) -> None:
        """Wait for all that is being read."""
        self.reader.wait()
        self._poll.stop()

    def forget(self) -> None:
        """Another capture, or none."""
        self._poll.stop()
        self.reader.close()
        self._known.clear()

    def values(self, view: Any, channel: Channel, frame: int, unit: int) -> Array:
        """(steps,) of one unit, NaN where nothing is known, or not yet."""
        steps = view.extent(channel.name, frame)[0]
        if steps <= PART:
            return _read(view, channel.name, frame, unit, (0, steps))
        key, revision = (channel.name, frame, unit), (id(view), view.revision(channel.name, frame), steps)
        seen, before = self._known.get(key, (None, np.zeros(0)))
        if seen != revision:
            grown = np.full(steps, np.nan)
            grown[: min(steps, len(before))] = before[:steps]  # what was read stays until it is read again
            self._known[key] = revision, grown
            self.reader.do(view, Task(("trace", key), _into(grown, *key)), at_once=False)
            if self.reader.busy:
                self._poll.start()
        self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self.reader.forget(("trace", self._known.popitem(last=False)[0]))
        return self._known[key][1]


def _into(into: Array, name: str, frame: int, unit: int) -> Callable[[Any], Iterator[None]]:
    """Read one unit into an array, a part after the other."""

    def steps(view: Any) -> Iterator[None]:
        for start in range(0, len(into), PART):
            cut = start, min(len(into), start + PART)
            found = _read(view, name, frame, unit, cut)
            into[start : start + len(found)] = found
            yield

    return steps


def _read(view: Any, name: str, frame: int, unit: int, cut: tuple[int, int]) -> Array:
    return drawable(view.block(name, frame, (slice(*cut), slice(unit, unit + 1)))).reshape(-1)
