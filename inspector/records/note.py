"""A note that a person writes on what a capture shows: a frame, a step, an iteration, a finding."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.records.labels import STEP_DOMAIN

MOST_CHARACTERS = 20_000
"""Of one note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What a note is about; with every field as it is by default, the capture as a whole.

    Attributes:
        frame: its number, -1 for none or for all.
        step, axis: a position along an axis of steps, -1 for none.
        iteration: of a training, -1 for none.
        unit: hidden unit of a place, -1 for none.
        finding, place: number of the rule ("IN101") and the place of the finding or of the unit, "" for none.
    """

    frame: int = -1
    step: int = -1
    axis: str = STEP_DOMAIN
    iteration: int = -1
    finding: str = ""
    place: str = ""
    unit: int = -1

    @property
    def words(self) -> str:
        """What it is about, in a few words."""
        parts = [f"{self.finding} {self.place}".strip()] if self.finding else [self.place] if self.place else []
        parts = [f"unit {self.unit} of {self.place or 'the model'}"] if self.unit >= 0 else parts
        axis = "step" if self.axis == STEP_DOMAIN else f"step of {self.axis}"
        parts += [f"{axis} {self.step}"] if self.step >= 0 else []
        parts += [f"iteration {self.iteration:,}"] if self.iteration >= 0 else []
        parts += [f"frame {self.frame}"] if self.frame >= 0 else []
        return ", ".join(parts) or "the whole"


@dataclass(frozen=True, slots=True)
class Note:
    """A person's words on something in a capture.

    Attributes:
        where: what it is about.
        text: as it was typed, plain text of any number of lines.
        written: when, in seconds since 1970.
        of: when the note was written in whose place this one stands, 0 for a new one; without text, that is removed.
    """

    where: Noted
    text: str
    written: float = 0.0
    of: float = 0.0
