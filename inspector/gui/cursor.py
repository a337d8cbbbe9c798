"""The shared cursor: step, place, unit and head, moved from any panel and followed by all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QObject, Signal


@dataclass(frozen=True, slots=True)
class Position:
    """Where the user looks. None means: nowhere in particular.

    Attributes:
        frame: index of the frame of the capture; -1 for the newest.
        place: channel place ("rnn.l0"); "" for the whole model.
        step: sequence step (of the query, for attention).
        unit: hidden unit; head: attention head; key: key position of an attention map, or source step of a matrix.
    """

    frame: int = -1
    place: str = ""
    step: int | None = None
    unit: int | None = None
    head: int | None = None
    key: int | None = None


class Cursor(QObject):
    """Holds one Position. `moved(new, old)` is emitted once per change, never for a move to the same position."""

    moved = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._position = Position()
        self._length = 0

    @property
    def position(self) -> Position:
        """The present position."""
        return self._position

    @property
    def length(self) -> int:
        """Number of steps that the cursor can walk over."""
        return self._length

    def set_length(self, steps: int) -> None:
        """Tell how long the sequence is; a step beyond the end is pulled back."""
        self._length = max(0, steps)
        step = self._position.step
        if step is not None and step >= self._length:
            self.move(step=self._length - 1 if self._length else None)

    def move(self, **changes: Any) -> None:
        """Change some coordinates; steps are clamped to the sequence."""
        step = changes.get("step")
        if step is not None and self._length:
            changes["step"] = min(max(0, int(step)), self._length - 1)
        new = replace(self._position, **changes)
        if new != self._position:
            old, self._position = self._position, new
            self.moved.emit(new, old)

    def advance(self, steps: int) -> None:
        """Walk some steps forward or back, from the first step if there is none yet."""
        self.move(step=(self._position.step if self._position.step is not None else 0) + steps)
