"""`inspector diagnose`: what the rules find in a capture."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from inspector.capture import LogView, not_computed, summary
from inspector.cli.fault import Fault, opened_any
from inspector.diagnosis import RULES, Diagnosis, diagnose
from inspector.diagnosis.diagnose import SEVERITIES
from inspector.records import Finding
from inspector.transport.terminal import complain, say


@click.command("diagnose")
@click.argument("capture")
@click.option("--run", default=None, metavar="NAME", help="One of the runs of a log; without it all of them.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default=None,
    help="End with 1 where a finding is as bad, or a rule failed.",
)
@click.option("--damaged", is_flag=True, help="Do not end with 1 because what rules read is damaged.")
def diagnose_(capture: str, run: str | None, as_json: bool, fail_on: str | None, damaged: bool) -> None:
    """Report what is wrong in a captured run, or in a log of a training: rule, place, steps, evidence, remedy."""
    with opened_any(capture, run) as opened:
        found = diagnose(opened, opened.frames)
        labels = {frame.index: frame.label for frame in opened.frames}
        of_log = isinstance(opened, LogView)
        lacking = "" if isinstance(opened, LogView) else not_computed(opened)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=1))
    else:
        _tell(found, labels if len(labels) > 1 else {}, of_log=of_log)
    for line in found.broken:
        complain(f"A rule could not be asked: {line}.")
    more = "" if damaged else " With --damaged this is no failure."
    for one in found.unjudged:
        complain(f"{one.rule} could not judge everything: {summary(one.damage)}{more}")
    if lacking:
        complain(f"{lacking} No rule has judged that.")
    _end(found, fail_on, damaged=damaged)


def _end(found: Diagnosis, fail_on: str | None, *, damaged: bool) -> None:
    """Raises Fault, or SystemExit where all is said already, for what the command ends with 1."""
    worst = max((SEVERITIES.index(finding.severity) for finding in found.findings), default=-1)
    if fail_on is not None and worst >= SEVERITIES.index(fail_on):
        raise Fault(f"There are findings of severity {SEVERITIES[worst]}.", 1)
    if (found.unjudged and not damaged) or (found.broken and fail_on is not None):
        raise SystemExit(1)


def _tell(found: Diagnosis, labels: dict[int, str], *, of_log: bool) -> None:
    lost = [damage for one in found.unjudged for damage in one.damage if not damage.anywhere]
    for finding in found.findings:
        say(f"{finding.severity}: {_where(finding, labels)}{finding.message} [{finding.rule}]")
        names = [
            f"{name} (damaged)" if any(one.concerns(name, finding.frame) for one in lost) else name
            for name in finding.evidence
        ]
        say(f"  evidence: {', '.join(names) or 'none'}")
        if finding.remedy:
            say(f"  remedy: {finding.remedy}")
    if not found.findings:
        say(f"Nothing was found by {', '.join(found.asked)}." if found.asked else "No rule has judged this capture.")
    for key in found.silent if of_log else ():
        reads = ", ".join(RULES[key].reads) or "a run of the model"
        say(f"{key} cannot be asked: it reads channels of kind {reads}, and a log has curves over training only.")
    if found.silent and not of_log:
        say(f"Nothing to look at was captured for {', '.join(found.silent)}.")


def _where(finding: Finding, labels: dict[int, str]) -> str:
    frame = f"{labels[finding.frame]}: " if finding.frame in labels else ""
    return f"{frame}{finding.place}: " if finding.place else frame
