"""`inspector diagnose`: what the rules find in a capture or log; `inspector rules`: which rules there are."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inspector.capture import LogView, not_computed, summary
from inspector.capture.regular import in_words
from inspector.cli.evidence import Evidence
from inspector.cli.fault import Fault, opened_any
from inspector.cli.findings_data import as_data
from inspector.cli.report import check_target, write_report
from inspector.cli.sarif import sarif
from inspector.cli.unseen import unseen
from inspector.cli.whole_file import write_whole
from inspector.diagnosis import (
    RULES,
    Diagnosis,
    Limit,
    Settings,
    SettingsError,
    diagnose,
    project_file,
    read_settings,
    untried,
)
from inspector.diagnosis.diagnose import SEVERITIES
from inspector.diagnosis.scarce import scarce
from inspector.diagnosis.words import in_frames, told_once
from inspector.records import Finding, counted
from inspector.transport.run_client import ask_catalog
from inspector.transport.terminal import complain, say


@click.command("diagnose")
@click.argument("capture")
@click.option("--run", help="The run, where a log has several.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--sarif", "sarif_file", type=click.Path(dir_okay=False), help="Also write them to a file (SARIF 2.1.0).")
@click.option("--to", type=click.Path(dir_okay=False), help="Also write a report: one .html file with figures.")
@click.option("--project", type=click.Path(dir_okay=False), help="Settings; else the nearest inspector.toml.")
@click.option("--muted", "with_muted", is_flag=True, help="Also tell of findings that the project mutes.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default=None,
    help="End with 1 where a finding is as bad, or a rule failed.",
)
@click.option("--damaged", is_flag=True, help="Do not end with 1 because what rules read is damaged.")
def diagnose_(
    capture: str, run: str | None, as_json: bool, sarif_file: str | None, to: str | None, project: str | None,
    with_muted: bool, fail_on: str | None, damaged: bool,
) -> None:  # fmt: skip
    """Report what is wrong in a captured run, a training or a log: rule, place, steps, evidence, remedy."""
    if to is not None:
        check_target(to)
    settings = Settings() if with_muted else _settings(project)
    notes: list[str] = []
    with opened_any(capture, run) as opened:
        found = diagnose(opened, opened.frames, settings)
        told = as_data(found, Evidence(opened, capture, run)) if as_json else {}
        if to is not None:
            notes = write_report(opened, found, capture, run, to)
        few = scarce(opened, found)
        labels = {frame.index: frame.label or f"frame {frame.index}" for frame in opened.frames}
        lacking = "" if isinstance(opened, LogView) else not_computed(opened)
        silent = tuple(unseen(found, opened))
    if sarif_file is not None:
        write_whole(Path(sarif_file), json.dumps(sarif(found, capture), indent=1, ensure_ascii=False))
    if as_json:
        click.echo(json.dumps(told, indent=1))
    elif to is None:
        _tell(found, labels if len(labels) > 1 else {})
        for line in silent:
            say(line)
        if few:
            say(few)
    else:
        say(f"{counted(len(told_once(found.findings)), 'finding')}: {to}")
    for line in notes:
        complain(line)
    for line in found.broken:
        complain(f"A rule could not be asked: {line}.")
    more = "" if damaged else " With --damaged this is no failure."
    for one in found.unjudged:
        complain(f"{one.rule} could not judge everything: {summary(one.damage)}{more}")
    if lacking:
        complain(f"{lacking} No rule has judged that.")
    _end(found, fail_on, damaged=damaged)


@click.command("rules")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def rules(as_json: bool) -> None:
    """List the rules: number, key, why a finding can be believed, what they say, their limits with the sources, and
    which cures can be tried for them (inspector try), or why none."""
    known, cures = sorted(RULES.items(), key=lambda item: item[1].id), cures_by_rule()
    if as_json:
        words = ("id", "title", "summary", "trust", "scope", "reads", "needs", "reference")
        told = [
            {
                "key": key,
                **{word: getattr(rule, word) for word in words},
                "limits": [_limit(one) for one in rule.limits],
                "cures": cures.get(rule.id, []),
                "untried": untried(key),
            }
            for key, rule in known
        ]
        click.echo(json.dumps(told, indent=1))
        return
    for key, rule in known:
        say(f"{rule.id}  {key} ({rule.trust}): {rule.summary}")
        for limit in rule.limits:
            value = f"{limit.value:g} {limit.unit}".strip()
            say(f"  {key}.{limit.name} = {value} ({limit.range}): {limit.source}")
        if cures:
            named = ", ".join(cures.get(rule.id, []))
            say(f"  can be tried: {named}" if named else f"  cannot be tried: {untried(key) or 'no cure names it'}")


def _limit(one: Limit) -> dict[str, Any]:
    """As JSON has it: null for a range without an end."""
    low, high = one.within
    return {**asdict(one), "within": [low, high if math.isfinite(high) else None]}


def cures_by_rule() -> dict[str, list[str]]:
    """{number of a rule: keys of the cures for it}, as the worker knows them; empty, and said, where none starts."""
    catalog, found = ask_catalog(), dict[str, list[str]]()
    if catalog is None:
        complain("The worker, which knows the cures, did not start.")
        return {}
    for cure in catalog.cures:
        for rule in cure.rules:
            found.setdefault(rule, []).append(cure.key)
    return found


def _settings(project: str | None) -> Settings:
    """Those of the file that was given, or of the nearest. Raises Fault."""
    path = Path(project) if project is not None else project_file(Path.cwd())
    if path is None:
        return Settings()
    try:
        return read_settings(path)
    except SettingsError as problem:
        raise Fault(str(problem)) from None
    except OSError as problem:
        raise Fault(f"{path} cannot be read: {in_words(problem)}.") from None


def _end(found: Diagnosis, fail_on: str | None, *, damaged: bool) -> None:
    """Raises Fault, or SystemExit where all is said already, for what the command ends with 1."""
    worst = max((SEVERITIES.index(finding.severity) for finding in found.findings), default=-1)
    if fail_on is not None and worst >= SEVERITIES.index(fail_on):
        raise Fault(f"There are findings of severity {SEVERITIES[worst]}.", 1)
    if (found.unjudged and not damaged) or (found.broken and fail_on is not None):
        raise SystemExit(1)


def _tell(found: Diagnosis, labels: dict[int, str]) -> None:
    lost = [damage for one in found.unjudged for damage in one.damage if not damage.anywhere]
    for one in told_once(found.findings):
        finding = one.finding
        say(f"{finding.severity}: {_where(finding, labels)}{finding.message} [{finding.id} {finding.rule}]")
        names = [
            f"{name} (damaged)" if any(bad.concerns(name, finding.frame) for bad in lost) else name
            for name in finding.evidence
        ]
        say(f"  evidence: {', '.join(names) or 'none'}")
        if len(one.frames) > 1:
            say(f"  frames: {in_frames(one, labels)}; the numbers are of {labels[finding.frame]}")
        for word in ("sure", "unless", "remedy", "code", "reference"):
            if text := getattr(finding, word):
                say(f"  {word}: {text}")
    clear = [key for key in found.asked if key not in {one.rule for one in found.findings}]
    if clear:
        say(f"Nothing was found by {', '.join(clear)}.")
    elif not found.findings:
        say("No rule has judged this capture.")
    if found.muted:
        say(f"{counted(len(found.muted), 'finding')} muted by the project's settings; --muted tells them.")
    if found.short:
        say(f"Too few points to judge for {', '.join(found.short)}.")


def _where(finding: Finding, labels: dict[int, str]) -> str:
    frame = f"{labels[finding.frame]}: " if finding.frame in labels else ""
    told = not finding.place or finding.place in finding.message
    return frame if told else f"{frame}{finding.place}: "
