"""Findings as data: `inspector diagnose --json`, in one form that stays (docs/scripting.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from inspector.cli.evidence import Evidence
from inspector.diagnosis import Diagnosis

SCHEMA = "inspector-findings-1"
"""Its number grows where a field changes its meaning or goes; fields may be added."""


def as_data(found: Diagnosis, evidence: Evidence) -> dict[str, Any]:
    """Everything that the rules said, each finding with where it shows and the commands that draw and export that."""
    opened = evidence.opened
    told = asdict(found)
    told["findings"] = [
        {**asdict(one), **_shown(evidence, one)} for one in found.findings
    ]  # fmt: skip
    head = {"schema": SCHEMA, "source": evidence.source, "run": evidence.run, "title": opened.start.title}
    return {**head, **told}


def _shown(evidence: Evidence, finding: Any) -> dict[str, Any]:
    """Views need the classes of the panels; where Qt cannot be loaded there are numbers alone."""
    try:
        return evidence.as_data(finding)
    except ImportError:
        return Evidence(evidence.opened, evidence.source, evidence.run, drawn=False).as_data(finding)
