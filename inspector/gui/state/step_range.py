"""The steps that are in view, shared by every panel: zooming one along the sequence zooms all.

Every step axis has a range of its own, shared by all that shows that axis.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from inspector.records import STEP_DOMAIN

ROOMS = (10, 13, 18, 24, 32, 42, 56, 75)
"""A decade in eight steps: while a sequence grows the view of the whole ends at one of these times a power of ten, so
that axes and labels are laid out eight times a decade and not with every page. At most 28 % of it is empty."""
QUIET_MS = 500
"""Milliseconds without a new step after which the view of the whole ends where the steps do."""


def room_for(steps: int) -> int:
    """The least number of the series that is not below a number of steps."""
    decade = 1
    while 100 * decade < steps:
        decade *= 10
    return next((one * decade for one in ROOMS if one * decade >= steps), 100 * decade)


class StepRange(QObject):
    """`changed(low, high)` has the visible range in steps (edges, so a whole sequence is −0.5 … n−0.5)."""

    changed = Signal(float, float)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._length = 0
        self._low, self._high = -0.5, 0.5
        self._whole = True
        self._kept: tuple[float, float] | None = None
        """A part that was in view of the run before, and is to be so again as soon as there are so many steps."""
        self._room = 0
        """Steps of a view of the whole while the sequence grows; 0: as many as there are."""
        self._quiet: QTimer | None = None
        self._beside: dict[str, StepRange] = {}

    def along(self, axis: str) -> StepRange:
        """The range of another axis, stored beside that of the input, which is this one; made on first request."""
        if axis == STEP_DOMAIN:
            return self
        if axis not in self._beside:
            self._beside[axis] = StepRange(self)
        return self._beside[axis]

    @property
    def every(self) -> Mapping[str, StepRange]:
        """The ranges of all axes by name, the input's first."""
        return {STEP_DOMAIN: self, **self._beside}

    def set_lengths(self, lengths: Mapping[str, int], *, growing: bool = False) -> None:
        """Set the length of every axis; those that are not named have no steps. `growing`: a run goes on."""
        for axis in dict.fromkeys((STEP_DOMAIN, *self._beside, *lengths)):
            self.along(axis).set_length(lengths.get(axis, 0), growing=growing)

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) in view."""
        return self._low, self._high

    @property
    def length(self) -> int:
        """Number of steps there are."""
        return self._length

    def set_length(self, steps: int, *, growing: bool = False) -> None:
        """The sequence has grown or is another one; a view of the whole stays a view of the whole. One that grows page
        by page (`growing`) has room for more, until no step was added for a while. Where there are no steps yet nothing
        moves: the picture of the run before is still there, and would be drawn at a single step."""
        if steps == self._length and (growing or not self._room):
            return
        grows = growing and steps > self._length > 0
        self._length, self._room = steps, room_for(steps) if grows else 0
        if grows:
            self._wait()
        if steps == 0:
            self._whole = True  # of whatever comes; what is kept of the run before waits for its steps
        elif self._kept is not None and self._kept[1] <= steps - 0.5:
            self.set(*self._kept)
        elif self._whole or self._high > steps:
            self.show_all()

    def keep(self) -> None:
        """Another run of the same model begins: the part in view of every axis stays, where it will have the steps."""
        for one in self.every.values():
            one._kept = one._kept if one._whole else (one._low, one._high)

    def forget(self) -> None:
        """Another model is shown: all of it."""
        for one in self.every.values():
            one._kept = None

    def _wait(self) -> None:
        if self._quiet is None:
            self._quiet = QTimer(self, interval=QUIET_MS, singleShot=True)
            self._quiet.timeout.connect(self._settle)
        self._quiet.start()

    @Slot()
    def _settle(self) -> None:
        """Nothing was added for a while: the view of the whole ends where the steps do."""
        self._room = 0
        if self._whole:
            self.show_all()

    def show_all(self) -> None:
        """Every step."""
        self._set(-0.5, max(1, self._length, self._room) - 0.5, whole=True)

    def show_whole(self) -> None:
        """Every step, because the user wants to see them: nothing of the run before is kept."""
        self._kept = None
        self.show_all()

    def set(self, low: float, high: float) -> None:
        """Show a range; at least two steps wide and inside the sequence."""
        self._kept = None
        width = min(max(high - low, 2.0), float(max(2, self._length)))
        centre = (low + high) / 2
        low = min(max(-0.5, centre - width / 2), max(-0.5, self._length - 0.5 - width))
        self._set(low, low + width, whole=width >= self._length)

    def zoom(self, factor: float, centre: float) -> None:
        """Narrow (factor < 1) or widen the view around a step."""
        self.set(centre - (centre - self._low) * factor, centre + (self._high - centre) * factor)

    def _set(self, low: float, high: float, *, whole: bool) -> None:
        self._whole = whole
        if (low, high) != (self._low, self._high):
            self._low, self._high = low, high
            self.changed.emit(low, high)


class AxisRange(StepRange):
    """The shared range of one axis, which can be switched."""

    def __init__(self, steps: StepRange, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.shared = steps
        self.axis = STEP_DOMAIN
        self._shown = steps
        steps.changed.connect(self._pass_on)

    def use(self, axis: str) -> None:
        """Follow the range of an axis."""
        before, self.axis = self.bounds, axis
        self._shown.changed.disconnect(self._pass_on)
        self._shown = self.shared.along(axis)
        self._shown.changed.connect(self._pass_on)
        if self.bounds != before:
            self.changed.emit(*self.bounds)

    def along(self, axis: str) -> StepRange:
        """The shared range of an axis, whichever axis is followed here."""
        return self.shared.along(axis)

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) in view."""
        return self._shown.bounds

    @property
    def length(self) -> int:
        """Number of steps there are."""
        return self._shown.length

    def set_length(self, steps: int, *, growing: bool = False) -> None:
        """The sequence shown has grown or is another one."""
        self._shown.set_length(steps, growing=growing)

    def show_all(self) -> None:
        """Every step."""
        self._shown.show_all()

    def show_whole(self) -> None:
        """Every step, because the user wants to see them."""
        self._shown.show_whole()

    def set(self, low: float, high: float) -> None:
        """Show a range."""
        self._shown.set(low, high)

    def zoom(self, factor: float, centre: float) -> None:
        """Narrow (factor < 1) or widen the view around a step."""
        self._shown.zoom(factor, centre)

    @Slot(float, float)
    def _pass_on(self, low: float, high: float) -> None:
        self.changed.emit(low, high)
