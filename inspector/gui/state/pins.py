"""Pins: places that were kept, whose numbers are shown beside those under the cursor."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.step_ranges import belonging_to
from inspector.records import STEP_DOMAIN

MOST = 6
"""Pins at a time: more columns of numbers would not fit beside the panels."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A place that was kept: its number, which is drawn in the plots, and where it is (along the input)."""

    number: int
    position: Position

    @property
    def words(self) -> str:
        """Where it is, in a few words."""
        at, steps = self.position, self.position.steps
        parts = [f"{'step' if axis == STEP_DOMAIN else axis} {step}" for axis, step in steps.items()]
        parts += [f"{word} {value}" for word, value in (("unit", at.unit), ("head", at.head), ("key", at.key))
                  if value is not None]  # fmt: skip
        return ", ".join([*parts, *([at.place] if at.place else [])])


class Pins(QObject):
    """The pins of a window. `added(pin)` before `changed()`; the frame of a pin is the one that is shown."""

    added = Signal(object)
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: tuple[Pin, ...] = ()

    def add(self, position: Position) -> str:
        """Keep a place; returns why it cannot be, as one sentence, "" where it was."""
        at = replace(position.along(STEP_DOMAIN), frame=-1)
        if not at.steps:
            return "There is no step under the cursor: move it over a plot or the sequence, then pin it."
        if any(pin.position == at for pin in self.all):
            return "This place is pinned already."
        if len(self.all) >= MOST:
            return f"{MOST} places are pinned, which is all that fit beside each other; remove one first."
        taken = {pin.number for pin in self.all}
        pin = Pin(next(number for number in range(1, MOST + 1) if number not in taken), at)
        self.all = tuple(sorted((*self.all, pin), key=lambda one: one.number))
        self.added.emit(pin)
        self.changed.emit()
        return ""

    def remove(self, number: int) -> None:
        """Remove the pin of a number; nothing where there is none."""
        left = tuple(pin for pin in self.all if pin.number != number)
        if left != self.all:
            self.all = left
            self.changed.emit()

    def clear(self) -> None:
        """Remove all."""
        if self.all:
            self.all = ()
            self.changed.emit()

    def along(self, axis: str) -> list[tuple[int, int]]:
        """(step, number) of each pin that has a step on an axis."""
        steps = ((pin.position.at(axis), pin.number) for pin in self.all)
        return [(step, number) for step, number in steps if step is not None]


def pins_of(cursor: Cursor | Looking) -> Pins:
    """The pins that belong to a shared cursor; made on first request, and gone with it."""
    return belonging_to(cursor, Pins)


def cells_of(pins: tuple[Pin, ...], axis: str, place: str, steps: int, units: int) -> list[tuple[int, int, int]]:
    """(step, unit, number) of the pins that are a cell of a map (unit, step) of a place, within its size."""
    found = []
    for pin in pins:
        step, unit = pin.position.at(axis), pin.position.unit
        here = pin.position.place in ("", place) and step is not None and unit is not None
        if here and step is not None and unit is not None and step < steps and unit < units:
            found.append((step, unit, pin.number))
    return found
