"""What happened at an iteration of a training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One moment of a training that is worth a mark.

    Attributes:
        iteration: the training iteration at which it happened.
        kind: a lower-case word: "nonfinite", "spike", "checkpoint", "learning_rate", "note", "restart".
        text: one line about it.
        frame: the frame that was written there; -1 where there is none.
    """

    iteration: float
    kind: str
    text: str = ""
    frame: int = -1
