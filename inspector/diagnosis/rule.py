"""The protocol of a rule, the data that it reads, and the registry of rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from inspector.capture.damage import Damage
from inspector.capture.view import View
from inspector.records import Finding, Refusal, Scalar
from inspector.registry import Registry

Trust = Literal["exact", "counterfactual", "statistical", "descriptive"]
"""Why a finding can be believed, the best reason first: nothing was estimated; something was tried, and the outcome
compared; a test over many iterations; a number beyond a limit that has a source."""
Scope = Literal["frame", "training"]


Range = tuple[float, float]
FROM_ZERO: Range = (0.0, math.inf)
"""Times, distances, sizes: nothing of the kind is negative."""
PART: Range = (0.0, 1.0)
"""Shares of a whole, and probabilities."""
COUNT: Range = (1.0, math.inf)
"""Of none nothing is judged."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A number that decides, which a project may change.

    Attributes:
        name: in a project's file, after the rule's key: "updates-lost.share".
        value, unit: what it is unless changed.
        source: where it comes from; what it misses, or accuses wrongly.
        within: the smallest and the largest number that make sense; a project's file with another one is refused.
        below: the name of another limit of the rule that is not to be smaller than this one, "" for none.
    """

    name: str
    value: float
    source: str
    unit: str = ""
    within: Range = FROM_ZERO
    below: str = ""

    @property
    def range(self) -> str:
        """What makes sense, in words: "0 to 1", "0 or more"."""
        low, high = self.within
        return f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}"


class Captured(View, Protocol):
    """What is diagnosed: channels and their numbers, and the scalars of every frame. An open capture or log is one."""

    @property
    def scalars(self) -> Sequence[Scalar]:
        """Single numbers, as written: name, frame, value."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What was not written, and why; remarks on what was."""

    @property
    def damage(self) -> Sequence[Damage]:
        """What is known to be lost, or may be. `diagnose` looks at it for every rule."""


class Run(Captured, Protocol):
    """The data of a rule."""

    def limit(self, name: str) -> float:
        """The value of one of the rule's limits, as the project has it."""

    def too_few(self, points: int, needed: float) -> bool:
        """Whether a series is too short to be judged; then it is told that the rule has not judged it."""

    def training(self) -> Mapping[str, Any]:
        """What a watched run said of its optimizers and parameters; empty where nothing was."""


class Rule(Protocol):
    """One way in which a model or its training can be wrong.

    Attributes:
        id: "IN101"; never given to another rule. The hundreds tell the trust: 1 exact, 2 counterfactual,
            3 statistical, 4 descriptive. Rules of other packages begin with other letters.
        title: a short text for a list.
        summary: one sentence on what is wrong where this rule finds something.
        trust: why a finding can be believed.
        scope: whether it judges each frame, or the training as a whole (then it is asked once, with frame -1).
        reads: kinds of the channels that it reads; it is not applied to a run without any of them.
        needs: quantities that have to be computed for it (`--with`); "" stands for none.
        limits: the numbers that decide. reference: where the claim comes from.

    A rule that no cure names also has `untried`: why nothing can be tried for it, the end of a sentence.
    """

    id: str
    title: str
    summary: str
    trust: Trust
    scope: Scope
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    limits: tuple[Limit, ...]
    reference: str

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """What is wrong in one frame, or in the training. Only what the numbers show, else nothing.

        Cells that were not captured or are damaged are NaN, or masked in whole numbers; a rule that read what is
        damaged is told of as one that could not judge. Raises CaptureError.
        """


RULES: Registry[Rule] = Registry("rules", "inspector.diagnosis.rules")


def scalar(run: Captured, name: str, frame: int) -> float:
    """The value of a scalar in a frame, NaN where there is none."""
    values = [one.value for one in run.scalars if one.name == name and one.frame == frame]
    return values[-1] if values else float("nan")


def untried(key: str) -> str:
    """Why nothing can be tried for what a rule finds, as the end of a sentence; "" where it does not say so."""
    return str(getattr(RULES[key], "untried", "")) if key in RULES else ""


def is_trend(rule: str) -> bool:
    """Whether the iteration of a rule's findings is where a trend begins, which is seen in the whole, not around it."""
    return rule in RULES and bool(getattr(RULES[rule], "trends", False))
