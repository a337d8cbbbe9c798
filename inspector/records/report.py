"""How a checkpoint matched a model, as a record and as text: a few plain lines, or one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.records.bounds import cut
from inspector.records.codec import BadRecordError, decode, encode
from inspector.records.counted import counted
from inspector.records.requests import CheckpointReport, Mismatch

KEY = "checkpoint"
"""The key of the report in a RunStart's `meta`."""
MOST_STORED = 1_000
FEW, MAX_SHOWN = 3, 80
MOST_NAMED = 6
PROBLEMS = ("missing", "unexpected", "shape", "non-finite", "dtype", "tied", "more")
"""The order in which they are reported; with any of the first three a checkpoint does not fit completely."""
BAD = PROBLEMS[:3]


def to_meta(report: CheckpointReport) -> dict[str, Any]:
    """The report for RunStart.meta; of very many mismatches the first ones and how many more there were."""
    if len(report.mismatches) > MOST_STORED:
        left = len(report.mismatches) - MOST_STORED
        more = Mismatch(name=f"{left:,} others", problem="more")
        report = replace(report, mismatches=(*report.mismatches[:MOST_STORED], more))
    return {KEY: json.loads(encode(report))}


def from_meta(meta: Mapping[str, Any]) -> CheckpointReport | None:
    """The report of a capture; None where it has none, or another value under that key."""
    if KEY not in meta:
        return None
    try:
        found = decode(json.dumps(meta[KEY]))
    except (BadRecordError, RecursionError):
        return None
    return found if isinstance(found, CheckpointReport) else None


def lines(report: CheckpointReport, *, whole: bool = False) -> list[str]:
    """The report in lines: what was loaded, and one line for everything that was not as plain as that.

    `whole` names every tensor; otherwise the first few of each kind, and of what was folded and what else the file
    holds no more than the layout says in the first line. Names are made printable.
    """
    most = None if whole else FEW
    told = [f"{_plain(Path(report.path).name)} ({_plain(report.layout, 200)}): {_loaded(report)}."]
    if report.removed_prefix:
        told.append(f"prefix removed from the names: {_plain(report.removed_prefix)}")
    if whole and report.folded:
        told.append(f"folded into plain weights: {_listed([_plain(name) for name in report.folded], most)}")
    if whole and report.others:
        told.append(f"not loaded, though the file holds it too: {_listed([_plain(n) for n in report.others], most)}")
    for problem in PROBLEMS:
        found = [_named(m) for m in report.mismatches if m.problem == problem]
        if found:
            told.append(f"{problem}: {_listed(found, most)}")
    return [*told, _plain(report.rebuilt, 2_000)] if report.rebuilt else told


def line(report: CheckpointReport) -> str:
    """The report in one line, with counts only."""
    parts = [_loaded(report)]
    if report.removed_prefix:
        parts.append(f"prefix {_plain(report.removed_prefix)} removed")
    counts = {problem: sum(m.problem == problem for m in report.mismatches) for problem in PROBLEMS[:-1]}
    parts += [f"{count} {problem}" for problem, count in counts.items() if count]
    return f"{_plain(Path(report.path).name)} ({_plain(report.layout, 200)}): {', '.join(parts)}"


def misfit(report: CheckpointReport) -> str:
    """Why a checkpoint that does not fit whole was not loaded, as one line, and the option that loads what fits."""
    bad = [m for m in report.mismatches if m.problem in BAD]
    shown = [f"{_plain(m.name)} ({m.problem}{f': {_plain(m.detail)}' if m.detail else ''})" for m in bad[:MOST_NAMED]]
    more = f" and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    total = counted(report.total, "tensor")
    return (
        f"{_plain(Path(report.path).name)} fits {report.matched} of the model's {total}; these "
        f"do not: {', '.join(shown)}{more}. Say --partial (in Python partial=True) to load what fits."
    )


def _loaded(report: CheckpointReport) -> str:
    if report.matched == report.total:
        return f"all {counted(report.total, 'tensor')} loaded"
    return f"{report.matched} of {counted(report.total, 'tensor')} loaded"


def _named(mismatch: Mismatch) -> str:
    return _plain(mismatch.name) + (f" ({_plain(mismatch.detail)})" if mismatch.detail else "")


def _listed(names: list[str], most: int | None) -> str:
    """How many, and the first of them."""
    shown = names if most is None else names[:most]
    left = len(names) - len(shown)
    return f"{len(names)} ({', '.join(shown)}{f' and {left} more' if left else ''})"


def _plain(text: str, most: int = MAX_SHOWN) -> str:
    """One printable line: names in a checkpoint may contain anything, escape sequences too."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cut(text, most))
