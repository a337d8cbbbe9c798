"""The shared cursor: step, place, unit and head, moved from any panel and followed by all.

Where the answer of a model has steps of its own, the cursor has a step there too. Who shows the answer looks through
`Looking`, for which the answer's step is the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN


@dataclass(frozen=True, slots=True)
class Position:
    """Where the user looks. None means: nowhere in particular.

    Attributes:
        frame: index of the frame of the capture; -1 for the newest.
        place: channel place ("rnn.l0"); "" for the whole model.
        step: sequence step (of the query, for attention).
        unit: hidden unit; head: attention head; key: key position of an attention map, or source step of a matrix.
        answer: step of the answer, where it has steps of its own.
    """

    frame: int = -1
    place: str = ""
    step: int | None = None
    unit: int | None = None
    head: int | None = None
    key: int | None = None
    answer: int | None = None


class Cursor(QObject):
    """Holds one Position. `moved(new, old)` is emitted once per change, never for a move to the same position."""

    moved = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._position = Position()
        self._length = self._answer_length = 0
        self._pulled: dict[str, int] = {}
        """Where the cursor was before a sequence that is still growing was too short for it."""

    @property
    def position(self) -> Position:
        """The present position."""
        return self._position

    @property
    def length(self) -> int:
        """Number of steps that the cursor can walk over."""
        return self._length

    @property
    def answer_length(self) -> int:
        """Number of steps of an answer that has its own, else 0."""
        return self._answer_length

    def set_length(self, steps: int, answer: int = 0) -> None:
        """Tell how long the sequence and the answer are; a step beyond the end is pulled back until they are longer.

        So a run that is made again, with an edit for example, is looked at where the one before was.
        """
        self._length, self._answer_length = max(0, steps), max(0, answer)
        for name, length in (("step", self._length), ("answer", self._answer_length)):
            step = getattr(self._position, name)
            wanted = self._pulled.get(name, step)
            if wanted is None:
                continue
            self.move(**{name: min(wanted, length - 1) if length else None})
            if wanted >= length:
                self._pulled[name] = wanted

    def move(self, **changes: Any) -> None:
        """Change some coordinates; steps are clamped to the sequence."""
        for name in ("step", "answer"):
            if name in changes:
                self._pulled.pop(name, None)
        for name, length in (("step", self._length), ("answer", self._answer_length)):
            step = changes.get(name)
            if step is not None and length:
                changes[name] = min(max(0, int(step)), length - 1)
        new = replace(self._position, **changes)
        if new != self._position:
            old, self._position = self._position, new
            self.moved.emit(new, old)

    def advance(self, steps: int) -> None:
        """Walk some steps forward or back, from the first step if there is none yet."""
        self.move(step=(self._position.step if self._position.step is not None else 0) + steps)


class Looking(QObject):
    """The shared cursor as somebody sees it who shows either the input's steps or the answer's.

    It is used as a Cursor is; over the answer, `step` means the answer's.
    """

    moved = Signal(object, object)

    def __init__(self, cursor: Cursor | Looking, domain: str = STEP_DOMAIN, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cursor: Cursor = cursor.cursor if isinstance(cursor, Looking) else cursor
        self.domain = domain
        self.cursor.moved.connect(self._pass_on)

    @property
    def answers(self) -> bool:
        """Whether the steps are those of the answer."""
        return self.domain == ANSWER_DOMAIN

    def seen(self, position: Position) -> Position:
        """A position with the step that counts here."""
        return replace(position, step=position.answer) if self.answers else position

    @property
    def position(self) -> Position:
        """The present position."""
        return self.seen(self.cursor.position)

    @property
    def length(self) -> int:
        """Number of steps that can be walked over here."""
        return self.cursor.answer_length if self.answers else self.cursor.length

    def move(self, **changes: Any) -> None:
        """Change some coordinates."""
        if self.answers and "step" in changes:
            changes["answer"] = changes.pop("step")
        self.cursor.move(**changes)

    def advance(self, steps: int) -> None:
        """Walk some steps forward or back, from the first step if there is none yet."""
        step = self.position.step
        self.move(step=(step if step is not None else 0) + steps)

    @Slot(object, object)
    def _pass_on(self, new: Position, old: Position) -> None:
        self.moved.emit(self.seen(new), self.seen(old))
