"""docs/faults-covered.md names tests and sections that exist, and docs/faults.md names that page."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
SECTION = re.compile(r"`faults ([a-z_]+)`")


def missing(page: str) -> list[str]:
    """The tests that a page names and that are not there."""
    return [f"{file}::{test}" for file, test in NAMED.findall(page) if test not in _tests_of(TESTS / file)]


def _tests_of(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text("utf-8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists() -> None:
    page = (DOCS / "faults-covered.md").read_text("utf-8")
    assert len(NAMED.findall(page)) > 80
    assert not missing(page)


def test_a_test_that_does_not_exist_is_seen() -> None:
    named = f"`faults/test_covered.py::{test_a_test_that_does_not_exist_is_seen.__name__}`"
    assert missing(f"{named} `faults/test_covered.py::test_of_nothing` `no/test_file.py::test_of_nothing`") == [
        "faults/test_covered.py::test_of_nothing", "no/test_file.py::test_of_nothing",
    ]  # fmt: skip


def test_every_row_names_something_that_tries_it() -> None:
    rows = [line for line in (DOCS / "faults-covered.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.endswith(("| tried by |", "how much of it |"))]
    assert len(rows) > 50
    assert [row for row in rows if not (NAMED.search(row) or SECTION.search(row))] == []


@pytest.mark.skipif(sys.platform != "linux", reason="sections import what only Linux has")
def test_every_section_that_the_page_names_exists() -> None:
    page, listed = ((DOCS / name).read_text("utf-8") for name in ("faults-covered.md", "faults.md"))
    known = set(re.findall(r"^\| `(\w+)` \| .+ \| (?:made|\d+) \|", listed, re.MULTILINE))
    assert "workers" in known and set(SECTION.findall(page)) <= known
    assert "(faults-covered.md)" in listed
