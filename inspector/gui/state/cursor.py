"""The shared cursor: a step on every axis, place, unit and head, moved from any panel and followed by all.

A run has a step axis for every sequence in it (the input, a second input, the answer, the layers of a stack). A panel
that shows one of them uses a `Looking`, for which `step` is the position along that axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from inspector.records import STEP_DOMAIN


@dataclass(frozen=True, slots=True)
class Position:
    """The selected position. None means: nothing selected.

    Attributes:
        frame: index of the frame of the capture; -1 for the newest.
        place: channel place ("rnn.l0"); "" for the whole model.
        step: position along `axis` (of the query, for attention).
        unit: hidden unit; head: attention head; key: key position of an attention map, or source step of a matrix.
        axis: the step axis of `step`.
        elsewhere: the position along every other axis that has one, by the axis' name.
    """

    frame: int = -1
    place: str = ""
    step: int | None = None
    unit: int | None = None
    head: int | None = None
    key: int | None = None
    axis: str = STEP_DOMAIN
    elsewhere: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elsewhere", MappingProxyType(dict(self.elsewhere)))

    @property
    def steps(self) -> Mapping[str, int]:
        """The position along every axis that has one."""
        own = {} if self.step is None else {self.axis: self.step}
        return MappingProxyType({**self.elsewhere, **own})

    def at(self, axis: str) -> int | None:
        """The position along an axis."""
        return self.steps.get(axis)

    def along(self, axis: str) -> Position:
        """The same position, seen along another axis."""
        if axis == self.axis:
            return self
        others = {name: step for name, step in self.steps.items() if name != axis}
        return replace(self, axis=axis, step=self.at(axis), elsewhere=others)

    def moved(self, axis: str, step: int | None) -> Position:
        """The position with another step on one axis."""
        return replace(self.along(axis), step=step).along(self.axis)


class Cursor(QObject):
    """Holds one Position. `moved(new, old)` is emitted once per change, never for a move to the same position."""

    moved = Signal(object, object)
    fixing = Signal(bool)
    """It was fixed where it is, or is free again."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.fixed = False
        """Whether it stays where it is while the mouse is over a plot; keys and clicks still move it."""
        self._position = Position()
        self._lengths: dict[str, int] = {}
        self._focus = STEP_DOMAIN
        self.settling = False
        """Whether it moves only because there are more steps or fewer: nobody asked to see another one."""
        self._pulled: dict[str, int] = {}
        """The cursor's position on an axis where a sequence that is still growing is too short for it."""

    @property
    def position(self) -> Position:
        """The present position, along the input."""
        return self._position

    @property
    def length(self) -> int:
        """Number of steps of the input."""
        return self.length_of(STEP_DOMAIN)

    def length_of(self, axis: str) -> int:
        """Number of steps of an axis; 0 where there is no such axis."""
        return self._lengths.get(axis, 0)

    def set_length(self, steps: int, axis: str = STEP_DOMAIN) -> None:
        """Set the length of one axis."""
        self.set_lengths({**self._lengths, axis: steps})

    def set_lengths(self, lengths: Mapping[str, int]) -> None:
        """Set the axes and their lengths; a step beyond an end moves to the end until the sequence is long enough.

        So the cursor stays at its position when a run is made again, with an edit for example.
        """
        before, self._lengths = self._lengths, {axis: max(0, length) for axis, length in lengths.items()}
        for axis in dict.fromkeys((*before, *self._lengths)):
            length, wanted = self.length_of(axis), self._pulled.get(axis, self._position.at(axis))
            if wanted is None:
                continue
            self._settle(axis, min(wanted, length - 1) if length else None)
            if wanted >= length:
                self._pulled[axis] = wanted

    def awaited(self, axis: str) -> int | None:
        """Where the cursor comes to be on an axis as soon as that has so many steps; None where that is not awaited."""
        return self._pulled.get(axis)

    def _settle(self, axis: str, step: int | None) -> None:
        self.settling = True
        try:
            self.move(steps={axis: step})
        finally:
            self.settling = False

    def move(self, **changes: Any) -> None:
        """Change some coordinates: `step` on the input, `steps` (axis → step) on any; they are clamped to the axis."""
        wanted: dict[str, int | None] = dict(changes.pop("steps", {}))
        if "step" in changes:
            wanted[STEP_DOMAIN] = changes.pop("step")
        new = replace(self._position, **changes)
        for axis, step in wanted.items():
            self._pulled.pop(axis, None)
            new = new.moved(axis, self._clamped(axis, step))
        if new != self._position:
            old, self._position = self._position, new
            self.moved.emit(new, old)

    def _clamped(self, axis: str, step: int | None) -> int | None:
        length = self.length_of(axis)
        return step if step is None or not length else min(max(0, int(step)), length - 1)

    def advance(self, steps: int, axis: str = STEP_DOMAIN) -> None:
        """Move some steps forward or back on an axis, from its first step if there is none yet."""
        self.move(steps={axis: (self._position.at(axis) or 0) + steps})

    def fix(self, on: bool) -> None:
        """Fix it where it is, or let the mouse move it again."""
        if on != self.fixed:
            self.fixed = on
            self.fixing.emit(on)

    def focus(self, axis: str) -> None:
        """The focused widget shows this axis: keys and the player move along it from now on."""
        self._focus = axis

    @property
    def focused(self) -> str:
        """The axis along which keys and the player move: the one in focus, else the first that has steps."""
        if self.length_of(self._focus):
            return self._focus
        return next((axis for axis, length in self._lengths.items() if length), STEP_DOMAIN)


class Looking(QObject):
    """The shared cursor for a view of one axis: `step` is the position along that.

    It is used as a Cursor is.
    """

    moved = Signal(object, object)

    def __init__(self, cursor: Cursor | Looking, axis: str = STEP_DOMAIN, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cursor: Cursor = cursor.cursor if isinstance(cursor, Looking) else cursor
        self.axis = axis
        self.cursor.moved.connect(self._pass_on)

    @property
    def position(self) -> Position:
        """The present position."""
        return self.cursor.position.along(self.axis)

    @property
    def length(self) -> int:
        """Number of steps of the axis."""
        return self.cursor.length_of(self.axis)

    def move(self, **changes: Any) -> None:
        """Change some coordinates; `step` is that on the axis."""
        own = {self.axis: changes.pop("step")} if "step" in changes else {}
        self.cursor.move(**{**changes, "steps": {**changes.get("steps", {}), **own}})

    def advance(self, steps: int) -> None:
        """Move some steps forward or back, from the first step if there is none yet."""
        self.cursor.advance(steps, self.axis)

    def focus(self) -> None:
        """The focused widget shows this axis."""
        self.cursor.focus(self.axis)

    @Slot(object, object)
    def _pass_on(self, new: Position, old: Position) -> None:
        self.moved.emit(new.along(self.axis), old.along(self.axis))
