"""Where a run noted that the model cuts the gradient of a recurrence between two steps: by detach, .data or no_grad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from inspector.records import Refusal, Scalar

SIGNAL, PARTS = "gradient/past_cuts", "gradient/detached_parts"
REMEDY = (
    "Take the detach(), .data or torch.no_grad() out of the loop over steps. Where a sequence is too long for that, "
    "cut only so often that the lags that the task needs lie between two cuts. Gates, initial weights and another "
    "learning rate do not help: no gradient crosses a cut."
)
CODE = "state = cell(x, state)  # without state.detach() between steps"


class Noted(Protocol):
    """What a run noted beside its channels."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What was not written, and why; remarks on what was."""

    @property
    def scalars(self) -> Sequence[Scalar]:
        """Single numbers."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A recurrence of which a loss teaches nothing beyond some of its steps.

    Attributes:
        place: of the recurrence. said: which steps, as a sentence without its stop. frame: in which this was noted.
        every: whether the gradient is cut between every two steps, so that none flows through time at all.
    """

    place: str
    said: str
    frame: int
    every: bool


def cuts_of(run: Noted, frame: int = -1) -> list[Cut]:
    """Those that were noted in a frame, or, for -1, in the newest frame that has one."""
    noted = [one for one in run.refusals if one.channel.endswith(f":{SIGNAL}") and frame in (-1, one.frame)]
    newest = max((one.frame for one in noted), default=frame)
    return [_cut(run, one) for one in noted if one.frame == newest]


def parts_cut(run: Noted, frame: int) -> dict[str, str]:
    """{place of a recurrence: what was noted in a frame of a part of its state, or of its step, that is detached}."""
    noted = [one for one in run.refusals if one.channel.endswith(f":{PARTS}") and one.frame == frame]
    return {one.channel.removesuffix(f":{PARTS}"): one.reason.partition(". ")[0] for one in noted}


def _cut(run: Noted, noted: Refusal) -> Cut:
    counts = {one.name: one.value for one in run.scalars if one.frame == noted.frame}
    most = counts.get(f"{noted.channel}/most", 0.0)
    every = most > 0 and counts.get(noted.channel, 0.0) >= most
    return Cut(noted.channel.removesuffix(f":{SIGNAL}"), noted.reason.partition(". ")[0], noted.frame, every)
