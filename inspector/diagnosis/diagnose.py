"""Every rule over every frame of a capture; a rule that fails is reported in one line and does not affect the
others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from inspector.capture.damage import Damage
from inspector.diagnosis.evidence import Evidence
from inspector.diagnosis.rule import RULES, Rule, Run
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
        silent: keys of those that had nothing to look at.
        broken: one line for each rule that could not be imported or failed.
        unjudged: the rules of whose evidence something is damaged.
    """

    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    silent: tuple[str, ...]
    broken: tuple[str, ...]
    unjudged: tuple[Unjudged, ...] = ()


def diagnose(run: Run, frames: Sequence[Frame]) -> Diagnosis:
    """Ask every rule about every frame, and about the training as a whole where it reads series.

    What a rule reads is noted, and damage to that means that it has not judged.
    """
    answers = [_answer(key, rule, run, frames) for key, rule in RULES.items()]
    found = [finding for answer in answers for finding in answer.findings]
    found.sort(key=lambda finding: (-SEVERITIES.index(finding.severity), finding.frame))
    return Diagnosis(
        findings=tuple(found),
        asked=tuple(one.key for one in answers if one.judged and one.something),
        silent=tuple(one.key for one in answers if one.judged and not one.something),
        broken=(*(f"{bad.origin}: {bad.reason}" for bad in RULES.broken), *(one.fault for one in answers if one.fault)),
        unjudged=tuple(Unjudged(one.key, one.damage) for one in answers if one.damage),
    )


@dataclass(slots=True)
class _Answer:
    """What came of asking one rule; `something` is whether there was anything to look at."""

    key: str
    findings: list[Finding] = field(default_factory=list)
    fault: str = ""
    damage: tuple[Damage, ...] = ()
    something: bool = False

    @property
    def judged(self) -> bool:
        return not self.damage and not self.fault


def _answer(key: str, rule: Rule, run: Run, frames: Sequence[Frame]) -> _Answer:
    answer, evidence = _Answer(key), Evidence(run)
    if not rule.reads or {channel.kind for channel in run.channels.values()} & set(rule.reads):
        try:
            for finding in _of_rule(key, rule, cast(Run, evidence), frames):
                answer.findings.append(finding)  # one by one: what comes before a failure is kept
        except Exception as fault:  # noqa: BLE001 - one rule may not take the others along
            answer.fault = f"{RULES.origin(key)}: {type(fault).__name__}: {' '.join(str(fault).split())}"
    answer.damage = evidence.damage(rule, {frame.index for frame in frames})
    answer.something = evidence.something or bool(answer.findings) or not rule.reads
    return answer


def _of_rule(key: str, rule: Rule, run: Run, frames: Sequence[Frame]) -> Iterator[Finding]:
    for frame in frames:
        for finding in rule.findings(run, frame.index):
            yield replace(_checked(finding), rule=key, frame=frame.index)
    over_training: Callable[[Run], Iterable[Finding]] | None = getattr(rule, "over_training", None)
    for finding in over_training(run) if over_training is not None else ():
        yield replace(_checked(finding), rule=key, frame=-1)


def _checked(finding: Finding) -> Finding:
    if finding.severity not in SEVERITIES:
        raise ValueError(f"a finding of severity {finding.severity!r}; expected {', '.join(SEVERITIES)}")
    return finding
