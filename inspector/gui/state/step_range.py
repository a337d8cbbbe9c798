"""The steps that are in view, shared by every panel: zooming one along the sequence zooms all.

An answer with steps of its own has a range of its own, shared by all that shows the answer.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN


class StepRange(QObject):
    """`changed(low, high)` tells the visible range in steps (edges, so a whole sequence is −0.5 … n−0.5)."""

    changed = Signal(float, float)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._length = 0
        self._low, self._high = -0.5, 0.5
        self._whole = True
        self.answer: StepRange | None = None
        """The range of the answer's steps, where somebody keeps one."""

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


class EitherRange(StepRange):
    """The shared range of the input's steps or that of the answer's, whichever is being shown."""

    def __init__(self, steps: StepRange, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.input = steps
        self.answer = steps.answer if steps.answer is not None else StepRange(self)
        self._shown = steps
        for shared in (self.input, self.answer):
            shared.changed.connect(self._pass_on)

    def use(self, domain: str) -> None:
        """Follow the range of a label domain of steps."""
        assert self.answer is not None
        before = self.bounds
        self._shown = self.answer if domain == ANSWER_DOMAIN else self.input
        if self.bounds != before:
            self.changed.emit(*self.bounds)

    @property
    def domain(self) -> str:
        """Whose steps are followed."""
        return STEP_DOMAIN if self._shown is self.input else ANSWER_DOMAIN

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) in view."""
        return self._shown.bounds

    @property
    def length(self) -> int:
        """Number of steps there are."""
        return self._shown.length

    def set_length(self, steps: int) -> None:
        """The sequence shown has grown or is another one."""
        self._shown.set_length(steps)

    def show_all(self) -> None:
        """Every step."""
        self._shown.show_all()

    def set(self, low: float, high: float) -> None:
        """Show a range."""
        self._shown.set(low, high)

    def zoom(self, factor: float, centre: float) -> None:
        """Narrow (factor < 1) or widen the view around a step."""
        self._shown.zoom(factor, centre)

    @Slot(float, float)
    def _pass_on(self, low: float, high: float) -> None:
        if self.sender() is self._shown:
            self.changed.emit(low, high)
