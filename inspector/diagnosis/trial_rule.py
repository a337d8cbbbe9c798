"""Rules that repeat what a trial step says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from inspector.analysis.before_training.trial import trials
from inspector.analysis.before_training.verdicts import PLACE, Tested, Verdict
from inspector.diagnosis.rule import Run, Trust
from inspector.diagnosis.verdict_rule import VerdictRule
from inspector.records.run import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRule(VerdictRule):
    """A rule over the verdicts of one trial."""

    trust: Trust = "counterfactual"
    severity: Severity = "warning"
    reads: tuple[str, ...] = ("trial",)
    sure: str = "tried on the batch that was given, with copies of the parameters"
    place: str = PLACE

    @property
    def needs(self) -> tuple[str, ...]:
        """The quantity that makes the trial."""
        return (f"trial/{self.test.replace(' ', '_')}",)

    def said(self, run: Tested, frame: int) -> list[Verdict]:
        """What the trial says."""
        limits = {one.name: cast(Run, cast(Any, run)).limit(one.name) for one in self.limits}
        return trials(run, frame, self.test, limits)
