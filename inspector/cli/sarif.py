"""Findings as SARIF 2.1.0 (OASIS standard, 2020), which code hosts and editors show."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from inspector.cli.findings_data import frames_data
from inspector.diagnosis import RULES, Diagnosis
from inspector.diagnosis.words import Repeated, told_once
from inspector.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"info": "note", "warning": "warning", "error": "error"}


def sarif(found: Diagnosis, source: str) -> dict[str, Any]:
    """One run of the tool over a capture or log; muted findings are suppressed results, as the standard has it."""
    rules = [_rule(key) for key in sorted(RULES, key=lambda key: RULES[key].id)]
    results = [_result(one, source) for one in told_once(found.findings)]
    results += [{**_result(one, source), "suppressions": [{"kind": "external"}]} for one in told_once(found.muted)]
    failed = [{"level": "error", "message": {"text": line}} for line in found.broken]
    driver = {"name": "inspector", "version": __version__, "rules": rules}
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    run["invocations"] = [{"executionSuccessful": not failed, "toolExecutionNotifications": failed}]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def address(source: str) -> str:
    """A path as a reference of RFC 3986: relative where it is (code hosts look below the root of the repository), with
    what may not stand in one as %XX."""
    path = Path(source)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _rule(key: str) -> dict[str, Any]:
    rule = RULES[key]
    return {
        "id": rule.id,
        "name": key,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.summary},
        "help": {"text": f"{rule.summary} {rule.reference}.".strip()},
        "properties": {"trust": rule.trust, "reference": rule.reference},
    }


def _result(one: Repeated, source: str) -> dict[str, Any]:
    finding = one.finding
    places = finding.places or (finding.place or "model",)
    return {
        "ruleId": finding.id,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. {finding.remedy}".strip()},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": address(source)}, "region": {"startLine": 1}},
                "logicalLocations": [{"fullyQualifiedName": place, "kind": "member"} for place in places],
            }
        ],
        "partialFingerprints": {"inspectorFinding/v1": one.name},
        "properties": {
            "evidence": list(finding.evidence),
            "frame": finding.frame,
            "frames": frames_data(one),
            "steps": list(finding.steps),
            "iterations": list(finding.iterations),
            "sure": finding.sure,
            "unless": finding.unless,
        },
    }
