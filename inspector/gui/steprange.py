"""The steps that are in view, shared by every panel: zooming one along the sequence zooms all."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class StepRange(QObject):
    """`changed(low, high)` tells the visible range in steps (edges, so a whole sequence is −0.5 … n−0.5)."""

    changed = Signal(float, float)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._length = 0
        self._low, self._high = -0.5, 0.5
        self._whole = True

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) in view."""
        return self._low, self._high

    @property
    def length(self) -> int:
        """Number of steps there are."""
        return self._length

    def set_length(self, steps: int) -> None:
        """The sequence has grown or is another one; a view of the whole stays a view of the whole."""
        if steps == self._length:
            return
        self._length = steps
        if self._whole or self._high > steps:
            self.show_all()

    def show_all(self) -> None:
        """Every step."""
        self._set(-0.5, max(1, self._length) - 0.5, whole=True)

    def set(self, low: float, high: float) -> None:
        """Show a range; at least two steps wide and inside the sequence."""
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
