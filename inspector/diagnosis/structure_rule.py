"""Rules that repeat what a structure test says."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.analysis.before_training.structure import verdicts
from inspector.analysis.before_training.verdicts import Tested, Verdict
from inspector.diagnosis.rule import Trust
from inspector.diagnosis.verdict_rule import VerdictRule

OTHERS = {"large": ("structure/causal",), "labels": ("structure/labels", "structure/causal")}
"""Tests that are not made by the quantity of their own name alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureRule(VerdictRule):
    """A rule over the verdicts of one structure test."""

    trust: Trust = "exact"
    reads: tuple[str, ...] = ("structure",)
    sure: str = "exact but for rounding, on the sequence that was given: the model itself was called with other inputs"

    @property
    def needs(self) -> tuple[str, ...]:
        """The quantity that makes the test; where two do, any of them."""
        return OTHERS.get(self.test, (f"structure/{self.test}",))

    def said(self, run: Tested, frame: int) -> list[Verdict]:
        """What the test says."""
        return verdicts(run, frame, self.test)
