"""Every rule over every frame of a capture; a rule that fails is reported in one line and does not affect the
others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast, runtime_checkable

from inspector.capture.damage import Damage
from inspector.diagnosis.evidence import Evidence
from inspector.diagnosis.rule import RULES, Captured, Rule, Run
from inspector.diagnosis.settings import Settings
from inspector.records import Finding, Frame

SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A rule that could not judge all that it looks at, since some of that is lost, or may be."""

    rule: str
    damage: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of the rules on a capture.

    Attributes:
        findings: the worst first, then by frame; also those of rules that could not judge everything.
        asked: keys of the rules that judged all that they look at: where these found nothing, there is nothing.
        short: the rules that did not judge a series since it has too few points, with how many they need.
        silent: keys of those that had nothing to look at.
        muted: findings that the project does not want to see.
        broken: one line for each rule that could not be imported or failed.
        unjudged: the rules of whose evidence something is damaged.
    """

    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    silent: tuple[str, ...]
    broken: tuple[str, ...]
    unjudged: tuple[Unjudged, ...] = ()
    muted: tuple[Finding, ...] = ()
    short: tuple[str, ...] = ()


HELD_BYTES = 96 << 20
"""Bytes of tables that are kept in memory from one rule to the next: several read the same ones, and a training of
hundreds of thousands of iterations has more than fits."""


@runtime_checkable
class Releasing(Protocol):
    """A capture whose arrays need not stay in memory; a log has them anyway."""

    def release(self, most: int) -> None:
        """See Capture.release."""


def diagnose(run: Captured, frames: Sequence[Frame], settings: Settings | None = None) -> Diagnosis:
    """Ask every rule about every frame, or once about the training. What a rule reads is noted, and damage to that
    means that it has not judged."""
    settings = settings or Settings()
    return gathered(list(answers(run, frames, settings)), settings)


def answers(run: Captured, frames: Sequence[Frame], settings: Settings) -> Iterator[Answer]:
    """What comes of asking each rule, one after the other, for who does other things in between."""
    for key, rule in RULES.items():
        yield _answer(key, rule, run, frames, settings)


def gathered(answers: Sequence[Answer], settings: Settings) -> Diagnosis:
    """What some rules, or all of them, say together."""
    found = [finding for answer in answers for finding in answer.findings]
    found.sort(key=lambda finding: (-SEVERITIES.index(finding.severity), finding.frame))
    parted = [settings.parted(finding) for finding in found]
    return Diagnosis(
        findings=tuple(left for left, _muted in parted if left is not None),
        asked=tuple(one.key for one in answers if one.judged and one.something and not one.short),
        silent=tuple(one.key for one in answers if one.judged and not one.something),
        broken=(*(f"{bad.origin}: {bad.reason}" for bad in RULES.broken), *(one.fault for one in answers if one.fault)),
        unjudged=tuple(Unjudged(one.key, one.damage) for one in answers if one.damage),
        muted=tuple(muted for _left, muted in parted if muted is not None),
        short=tuple(f"{one.key} ({one.short})" for one in answers if one.short),
    )


@dataclass(slots=True)
class Answer:
    """What came of asking one rule.

    Attributes:
        key: of the rule; findings: what it found, those before a failure too.
        fault: why it failed, as one line; damage: what is lost, or may be, of what it read.
        something: whether there was anything to look at; short: how many points there were, where too few.
    """

    key: str
    findings: list[Finding] = field(default_factory=list)
    fault: str = ""
    damage: tuple[Damage, ...] = ()
    something: bool = False
    short: str = ""

    @property
    def judged(self) -> bool:
        return not self.damage and not self.fault


def _answer(key: str, rule: Rule, run: Captured, frames: Sequence[Frame], settings: Settings) -> Answer:
    answer, evidence = Answer(key), Evidence(run, lambda: _limits(key, rule, settings))
    if not rule.reads or {channel.kind for channel in run.channels.values()} & set(rule.reads):
        try:
            for finding in _of_rule(key, rule, cast(Run, evidence), frames):
                answer.findings.append(finding)  # one by one: what comes before a failure is kept
        except Exception as fault:  # noqa: BLE001 - one rule may not take the others along
            answer.fault = f"{RULES.origin(key)}: {type(fault).__name__}: {' '.join(str(fault).split())}"
    answer.findings = [one for one in answer.findings if not _outgrown(one, rule, answer.findings, run, frames)]
    answer.damage = evidence.damage(rule, {frame.index for frame in frames})
    if evidence.short is not None:
        answer.short = f"{evidence.short[0]} of {evidence.short[1]:g} points"
    answer.something = evidence.something or bool(answer.findings) or not rule.reads
    if isinstance(run, Releasing):
        run.release(HELD_BYTES)
    return answer


def _outgrown(finding: Finding, rule: Rule, found: Sequence[Finding], run: Captured, frames: Sequence[Frame]) -> bool:
    """Whether a description fits the model before its first step alone: frames of the same training from later on have
    the same numbers, and in none of them the rule says so of the place.

    Counter-example: what is wrong at first and heals after a thousand iterations is not told; curves show it.
    """
    first = {one.index for one in frames if one.step == 0 and not one.edited}
    later = {one.index for one in frames if one.step and not one.edited}
    if rule.trust != "descriptive" or finding.frame not in first or not later:
        return False
    seen = [n for n in later if all(run.revision(name, n) for name in finding.evidence)]
    places = {finding.place, *finding.places}
    return bool(seen) and not any(one.frame in later and places & {one.place, *one.places} for one in found)


def _limits(key: str, rule: Rule, settings: Settings) -> dict[str, float]:
    return {one.name: settings.limits.get(f"{key}.{one.name}", one.value) for one in rule.limits}


def _of_rule(key: str, rule: Rule, run: Run, frames: Sequence[Frame]) -> Iterator[Finding]:
    for frame in [-1] if rule.scope == "training" else [one.index for one in frames]:
        for finding in rule.findings(run, frame):
            if finding.severity not in SEVERITIES:
                raise ValueError(f"a finding of severity {finding.severity!r}; expected {', '.join(SEVERITIES)}")
            reference = finding.reference or rule.reference
            yield replace(finding, rule=key, id=rule.id, frame=frame, reference=reference)
