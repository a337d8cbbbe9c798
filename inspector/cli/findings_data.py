"""Findings as data: `inspector diagnose --json`, in one form that stays (docs/scripting.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from inspector.cli.evidence import Evidence
from inspector.diagnosis import Diagnosis
from inspector.diagnosis.scarce import scarce
from inspector.diagnosis.words import Repeated, told_once

SCHEMA = "inspector-findings-2"
"""Its number grows where a field changes its meaning or goes; fields may be added."""


def as_data(found: Diagnosis, evidence: Evidence) -> dict[str, Any]:
    """Everything that the rules said, each finding with where it shows and the commands that draw and export that."""
    opened = evidence.opened
    told = asdict(found)
    told["findings"] = [{**_plain(one), **_shown(evidence, one.finding)} for one in told_once(found.findings)]
    told["muted"] = [_plain(one) for one in told_once(found.muted)]
    told["scarce"] = scarce(evidence.opened, found)
    head = {"schema": SCHEMA, "source": evidence.source, "run": evidence.run, "title": opened.start.title}
    return {**head, **told}


def _plain(one: Repeated) -> dict[str, Any]:
    return {"name": one.name, **asdict(one.finding), "frames": frames_data(one)}


def frames_data(one: Repeated) -> dict[str, Any]:
    """In which frames a finding is: how many, the first, the last, all; 0 and none for a training as a whole."""
    frames = list(one.frames)
    first, last = (frames[0], frames[-1]) if frames else (None, None)
    return {"count": len(frames), "first": first, "last": last, "all": frames}


def _shown(evidence: Evidence, finding: Any) -> dict[str, Any]:
    """Views need the classes of the panels; where Qt cannot be loaded there are numbers alone."""
    try:
        return evidence.as_data(finding)
    except ImportError:
        return Evidence(evidence.opened, evidence.source, evidence.run, drawn=False).as_data(finding)
