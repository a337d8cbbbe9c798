"""The table rule × (ill, healthy, cured), as docs/cures.md and the terminal have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sample_models.illnesses import VERSIONS, Case
from sample_models.illnesses.results import Result

BEGIN, END = "<!-- table of cures: begin -->", "<!-- table of cures: end -->"


def markdown(cases: Sequence[Case], results: Mapping[str, Sequence[Result]]) -> str:
    """The table, by the number of the rule. Only cases with results."""
    lines = [
        "| rule | fault and cure | number | ill | healthy | cured | other warnings |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in sorted(cases, key=lambda case: case.rule):
        if rows := results.get(case.name):
            cells = [_cell(rows, version) for version in VERSIONS]
            what = f"{case.fault} {case.cure}".replace("|", "\\|")
            number = (case.evidence or "loss").replace("|", "\\|")
            lines.append(f"| {case.rule} {case.key} | {what} | {number} | {' | '.join(cells)} | {_others(rows)} |")
    return "\n".join(lines)


def _cell(rows: Sequence[Result], version: str) -> str:
    """What the rule says in each seed, and the numbers."""
    own = sorted((one for one in rows if one.version == version), key=lambda one: one.seed)
    said = [one.fired or "silent" for one in own]
    words = said[0] if len(set(said)) == 1 else ", ".join(said)
    numbers = ", ".join("NaN" if math.isnan(one.loss) else f"{one.loss:.3g}" for one in own)
    return f"{words} ({numbers})"


def _others(rows: Sequence[Result]) -> str:
    """Other rules at warning or above, by version: "ill: IN303 (3 of 3)"."""
    parts = []
    for version in VERSIONS:
        own = [one for one in rows if one.version == version]
        found = sorted({rule for one in own for rule in one.others})
        if found:
            counts = (f"{rule.split()[0]} ({sum(rule in one.others for one in own)} of {len(own)})" for rule in found)
            parts.append(f"{version}: {', '.join(counts)}")
    return "; ".join(parts)


def replaced(page: str, table: str) -> str:
    """A page with the table in the place of the one that it has. Raises ValueError where it has no place."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page has no place for the table; expected the lines {BEGIN} and {END}.")
    return f"{before}{begin}\n{table}\n{end}{after}"
