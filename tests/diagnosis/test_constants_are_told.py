"""Every number on which a verdict depends stands in docs/diagnosis.md, with its value and its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from inspector.diagnosis import RULES
from tests.support import deciding_constants
from tests.support.deciding_constants import constants

PAGE = Path(__file__).parents[2] / "docs" / "diagnosis.md"
NO_VERDICT = {
    "given.CROSSED": "a code", "wiring.SHIFTS": "columns", "trial.NAMES": "words", "case_script.WIDTH": "words",
    "case_script.MOST": "words", "heads.NAMED": "words",
    "other_lengths.FURTHER": "words", "diagnose.HELD_BYTES": "memory",
    "series.BLOCK": "memory", "units.ROWS": "memory", "loss_trend.POINTS": "memory", "settings.LARGEST": "a file's size",
    "settings.MOST_DOTS": "a file's form", "rule.PART": "what is refused", "rule.COUNT": "what is refused",
    "rule.FROM_ZERO": "what is refused", "settings.NAMED": "words",
    "settings.MOST_TOLD": "words",
}  # fmt: skip
"""Numbers on which nothing depends that is said of a training, and what they are."""


def told() -> dict[str, tuple[str, str, str]]:
    """{number: (value, rules, reason)} of the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("<!-- fixed numbers: begin -->")[2].partition("<!-- fixed numbers: end -->")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) == len(table.strip().splitlines()) - 2  # head and rule
    return {name: (value, rules, reason) for name, value, rules, reason in rows}


def test_every_number_that_decides_is_in_the_table_with_its_value() -> None:
    there, page = constants(), told()
    assert {name: value for name, value in there.items() if name not in NO_VERDICT} == {
        name: value for name, (value, _, _) in page.items()
    }
    assert set(NO_VERDICT) <= set(there)


def test_every_row_has_rules_that_exist_and_a_reason() -> None:
    known = {rule.id for _, rule in RULES.items()}
    for name, (_, rules, reason) in told().items():
        assert set(re.findall(r"IN\d+", rules)) <= known, name
        assert reason.endswith(".") and len(reason) > 12, name


def test_a_new_number_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "NEW, WORDS = 0.25, 'a'\nOTHER: float = -1e-3\nNOT = ('a', 1)\nbelow = 3\nBOTH = (1, 2)\n"
    path = tmp_path / "fresh.py"
    path.write_text(source, encoding="utf-8")
    ast.parse(source)
    monkeypatch.setattr(deciding_constants, "judging", lambda: [path])
    assert constants() == {"fresh.NEW": "0.25", "fresh.OTHER": "-0.001", "fresh.BOTH": "(1, 2)"}
