"""The base of rules that repeat what a test before a training says: its numbers, and the remedy of the rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from inspector.analysis.before_training.verdicts import Tested, Verdict
from inspector.diagnosis.rule import Limit, Run, Scope, Trust
from inspector.records import Finding
from inspector.records.run import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRule:
    """A rule over the verdicts of one test.

    Attributes:
        key, id, title, summary, reference: as of every rule.
        test: whose faults are findings. facts: whether its facts are findings too, as information.
        remedy, code, unless: what to change, and what would make it wrong.
        severity: of a fault. trust, reads: as of every rule. sure: how sure a finding is.
        place: of a finding whose verdict names none.
        untried: why nothing can be tried, where no cure is for it.
    """

    key: str
    id: str
    title: str
    summary: str
    reference: str
    test: str
    remedy: str
    unless: str
    code: str = ""
    severity: Severity = "error"
    facts: bool = False
    trust: Trust
    reads: tuple[str, ...]
    sure: str
    place: str = ""
    scope: Scope = "frame"
    limits: tuple[Limit, ...] = ()
    untried: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The quantities any of which makes the test."""
        raise NotImplementedError

    def said(self, run: Tested, frame: int) -> list[Verdict]:
        """What the test says."""
        raise NotImplementedError

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each fault that the test found; nothing where it was not made."""
        made = [one.name for one in run.channels.values() if one.signal in self.needs]
        pages = [run.revision(name, frame) for name in made]  # of each, since those of one may be lost
        if not any(pages):
            return
        for verdict in self.said(cast(Tested, cast(Any, run)), frame):
            fault = verdict.word == "fault"
            if verdict.test == self.test and (fault or (self.facts and verdict.word == "fact")):
                yield Finding(
                    rule=self.key, severity=self.severity if fault else "info", place=verdict.place or self.place,
                    message=verdict.sentence, evidence=(verdict.channel,) if verdict.channel else (),
                    steps=verdict.steps, sure=self.sure,
                    unless="" if verdict.remedy else self.unless, remedy=verdict.remedy or self.remedy,
                    code="" if verdict.remedy else self.code,
                )  # fmt: skip
