"""What a panel can show of a difference of two runs: what was subtracted, or else one run or the other, alternately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox

from inspector.capture import Capture, Difference, Pair, Side
from inspector.capture.curves import HISTOGRAM, SERIES
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records import Channel

RUNS = ("edited run", "original run")
OF_NO_FRAME = (SERIES, HISTOGRAM)
"""Kinds whose numbers belong to the whole training, whichever frame is shown."""
WHY = "What this panel shows belongs to one run and cannot be subtracted: switch between the two to see what changed"


class RunChoice(QComboBox):
    """The choice between two runs, in a panel that cannot show their difference. `turned(side)`: 1 is the second."""

    turned = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.addItems(list(RUNS))
        self.setAccessibleName("Run that is shown")
        self.setToolTip(tooltip(WHY))
        self.activated.connect(self._turn)
        self.hide()

    def offer(self, source: Any, second: int | None) -> None:
        """Visible only where `second` is shown instead of a difference; it is shown first."""
        self.setVisible(second is not None and isinstance(source, Pair))
        if second is not None and isinstance(source, Pair):
            names = RUNS if isinstance(source, Difference) else (source.after.name, source.before.name)
            for index, name in enumerate(names):
                self.setItemText(index, clean(name))
            self.setCurrentIndex(0)

    @Slot(int)
    def _turn(self, index: int) -> None:
        self.turned.emit(1 - index)


def readable(source: Any, accepts: Callable[[Channel], bool]) -> tuple[Any, int | None]:
    """(what to read, None), or, for a difference with an accepted channel of one run only, (its capture, the frame);
    of one side of two that are beside each other that side and its frame."""
    if isinstance(source, Side):
        return source, source.frame
    if not isinstance(source, Pair):
        return source, None
    apart = any(
        (channel.compare == "separate" or channel.kind in OF_NO_FRAME) and accepts(channel)
        for channel in source.capture.channels.values()
    )
    return (source.capture, source.second) if apart else (source, None)


def filled(capture: Capture | None, accepts: Callable[[Channel], bool], frame: int) -> list[Channel]:
    """The accepted channels that have data in a frame, each as it is described there: an edited run has other titles,
    and what is exact in one run may be estimated in another."""
    if capture is None:
        return []
    if type(capture) is not Capture:
        return _filled(capture, accepts, frame)
    changes, known = _KNOWN.setdefault(capture, (capture.changes, {}))
    if changes != capture.changes or len(known) > MOST_KNOWN:
        _KNOWN[capture] = capture.changes, known
        known.clear()
    if (accepts, frame) not in known:
        known[accepts, frame] = _filled(capture, accepts, frame)
    return list(known[accepts, frame])


_KNOWN: WeakKeyDictionary[Capture, tuple[int, dict[Any, list[Channel]]]] = WeakKeyDictionary()
"""What was found in a capture since it changed last: drawing a panel asks some twenty times."""
MOST_KNOWN = 1000
"""Answers for each capture, of panels and frames."""


def _filled(capture: Capture, accepts: Callable[[Channel], bool], frame: int) -> list[Channel]:
    wanted = [(c.name, -1 if c.kind in OF_NO_FRAME else frame) for c in capture.channels.values() if accepts(c)]
    return [capture.channel(name, at) for name, at in wanted if capture.revision(name, at)]


def filled_in_any(capture: Capture | None, accepts: Callable[[Channel], bool], frame: int) -> list[Channel]:
    """The accepted channels that have data in some frame, each as the newest of those describes it: what is drawn over
    training does not go while a frame is written. Of what is no single capture those of the frame."""
    if not isinstance(capture, Capture):
        return filled(capture, accepts, frame)
    found = []
    for name in [c.name for c in capture.channels.values() if accepts(c)]:
        at = next((one.index for one in reversed(capture.frames) if capture.revision(name, one.index)), None)
        if at is not None:
            found.append(capture.channel(name, at))
    return found
