"""Every rule over every frame of a capture; a rule that fails is reported in one line and does not affect the
others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inspector.diagnosis.rule import RULES, Rule, Run
from inspector.records import Finding, Frame

SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The results of the rules on a capture.

    Attributes:
        findings: the worst first, then by frame.
        asked: keys of the rules whose kinds of channels exist.
        silent: keys of those without any channel to read.
        broken: one line for each rule that could not be imported or failed.
    """

    findings: tuple[Finding, ...]
    asked: tuple[str, ...]
    silent: tuple[str, ...]
    broken: tuple[str, ...]


def diagnose(run: Run, frames: Sequence[Frame]) -> Diagnosis:
    """Apply every rule to every frame."""
    rules = RULES.items()
    broken = [f"{bad.origin}: {bad.reason}" for bad in RULES.broken]
    kinds = {channel.kind for channel in run.channels.values()}
    asked = [(key, rule) for key, rule in rules if not rule.reads or kinds & set(rule.reads)]
    found: list[Finding] = []
    for key, rule in asked:
        try:
            found += list(_of_rule(key, rule, run, frames))
        except Exception as fault:  # noqa: BLE001 - a failure of one rule must not affect the others
            broken.append(f"{RULES.origin(key)}: {type(fault).__name__}: {' '.join(str(fault).split())}")
    found.sort(key=lambda finding: (-SEVERITIES.index(finding.severity), finding.frame))
    keys = [key for key, _ in asked]
    silent = tuple(key for key, _ in rules if key not in keys)
    return Diagnosis(tuple(found), tuple(keys), silent, tuple(broken))


def _of_rule(key: str, rule: Rule, run: Run, frames: Sequence[Frame]) -> Iterator[Finding]:
    for frame in frames:
        for finding in rule.findings(run, frame.index):
            if finding.severity not in SEVERITIES:
                raise ValueError(f"a finding of severity {finding.severity!r}; expected {', '.join(SEVERITIES)}")
            yield replace(finding, rule=key, frame=frame.index)
