"""Something that happened at one iteration of a training: a spike, a value that is not finite, a note of the user's."""

from __future__ import annotations

from dataclasses import dataclass

PAUSED, CONTINUED, BREAK_ON = "paused", "continued", "break condition"
"""A watched training waits; goes on; its window or program has set when it is to wait (the text; "" for never)."""
EVENT_KINDS = (
    "non-finite", "spike", "checkpoint", "learning rate", "note", "restart", "skipped", PAUSED, CONTINUED, BREAK_ON,
)  # fmt: skip
"""Known kinds. Others are allowed; these have marks of their own in the window."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a training run.

    Attributes:
        iteration: when it happened, as the coordinate of the axis "iteration" counts; need not be a whole number
            (logs of epochs).
        kind: which sort of event (see EVENT_KINDS).
        text: one line for the user.
        frame: the frame that shows the model at that moment, -1 where there is none.
    """

    iteration: float
    kind: str
    text: str = ""
    frame: int = -1
