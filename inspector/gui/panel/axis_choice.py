"""Which step axis a panel shows, where its channels lie along several: never two of them on one axis of a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from inspector.capture import Capture
from inspector.gui.state.cursor import Looking
from inspector.gui.state.step_axes import axis_names, axis_of, places_along
from inspector.gui.state.step_range import AxisRange
from inspector.gui.widgets.controls import chooser, set_options
from inspector.gui.widgets.plain_text import clean
from inspector.records import STEP_DOMAIN, Channel


class AxisChoice(QObject):
    """Switches cursor and range of a panel together to the chosen axis. `chosen()` when the user chooses."""

    chosen = Signal()

    def __init__(self, looking: Looking, steps: AxisRange, parent: QObject) -> None:
        super().__init__(parent)
        self.looking, self.steps = looking, steps
        self.box = chooser([], "Which sequence is shown")
        self.box.activated.connect(self._choose)
        self.box.hide()
        self._offered: tuple[str, ...] = ()

    @staticmethod
    def places(capture: Capture | None) -> Mapping[str, str]:
        """Place → its axis."""
        return places_along(capture) if capture is not None else {}

    def own(self, capture: Capture | None, channels: Sequence[Channel]) -> list[Channel]:
        """Those of the channels that are shown along the axis."""
        places = self.places(capture) if channels else {}
        return [channel for channel in channels if axis_of(channel, places) == self.looking.axis]

    def settle(self, capture: Capture, frame: int, channels: Sequence[Channel]) -> None:
        """Offer the axes of some channels where they are several, and switch to one of them."""
        places = self.places(capture)
        found = {axis_of(channel, places) for channel in channels}
        words = axis_names(capture, frame)
        self._offered = (*(axis for axis in words if axis in found), *sorted(found - set(words)))
        set_options(self.box, [clean(words.get(axis, axis)) for axis in self._offered])
        self.box.setVisible(len(found) > 1)
        if found:
            self.use(self.looking.axis if self.looking.axis in found else self._offered[0])

    def use(self, axis: str) -> None:
        """Switch to an axis."""
        if axis in self._offered:
            self.box.setCurrentIndex(self._offered.index(axis))
        if axis != self.looking.axis:
            self.looking.axis = axis
            self.steps.use(axis)

    def turn_to(self, place: str, capture: Capture | None) -> bool:
        """Switch to the axis of a place; returns whether that is another one."""
        axis = self.places(capture).get(place, STEP_DOMAIN)
        if axis == self.looking.axis:
            return False
        self.use(axis)
        return True

    def title(self, capture: Capture | None, frame: int) -> str:
        """What the axis counts: "step", "answer step", "layer"."""
        return clean(capture.axis(self.looking.axis, frame).title) if capture is not None else ""

    def prefix(self, capture: Capture | None, frame: int) -> str:
        """The prefix of a number at a step that is not the input's: "answer: "."""
        if capture is None or self.looking.axis == STEP_DOMAIN:
            return ""
        return f"{clean(axis_names(capture, frame).get(self.looking.axis, self.looking.axis))}: "

    @Slot(int)
    def _choose(self, index: int) -> None:
        self.use(self._offered[index])
        self.chosen.emit()
