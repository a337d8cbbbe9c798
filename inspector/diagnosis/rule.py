"""The protocol of a rule, the data that it reads, and the registry of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from inspector.capture.damage import Damage
from inspector.capture.view import View
from inspector.records import Finding, Scalar
from inspector.registry import Registry


class Run(View, Protocol):
    """The data of a rule: channels and their numbers, and the scalars of every frame. An open capture is one."""

    @property
    def scalars(self) -> Sequence[Scalar]:
        """Single numbers, as written: name, frame, value."""

    @property
    def damage(self) -> Sequence[Damage]:
        """What is known to be lost, or may be. `diagnose` looks at it for every rule."""


class Rule(Protocol):
    """One way in which a model can be wrong.

    Attributes:
        title: a short text for a list.
        summary: one sentence on what is wrong where this rule finds something.
        reads: kinds of the channels that it reads; it is not applied to a run without any of them.

    A rule that reads series over training, which belong to no frame, has a second method `over_training(run)`, with
    findings of the whole run. A log has nothing but series.
    """

    title: str
    summary: str
    reads: tuple[str, ...]

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """What is wrong in one frame. Only what the numbers show: nothing where they do not suffice.

        Cells that were not captured or are damaged are NaN, or masked in whole numbers; a rule that read what is
        damaged is told of as one that could not judge. Raises CaptureError.
        """


RULES: Registry[Rule] = Registry("rules", "inspector.diagnosis.rules")


def scalar(run: Run, name: str, frame: int) -> float:
    """The value of a scalar in a frame, NaN where there is none."""
    values = [one.value for one in run.scalars if one.name == name and one.frame == frame]
    return values[-1] if values else float("nan")
