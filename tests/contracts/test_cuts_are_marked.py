"""A text from outside that a message cuts ends in "…": what is missing is not taken for the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from inspector.records.plain_text import shortened

ROOT = Path(__file__).parents[2] / "inspector"
LEAST = 20
"""Characters from which a slice with a number is taken for that of a text; fewer are letters and shares of lists."""
NAMES = {
    "capture/pack.py", "capture/whole_file.py", "transport/network/address.py",  # of files that are there for a moment
    "records/plain_values.py",  # of a class, within a mark of its own
    "engine/programs/scripted/example.py", "engine/watch/scripts/startup/sitecustomize.py",  # marked in place
}  # fmt: skip


def cuts(text: str) -> Iterator[int]:
    """The lines of a file in which a message has `text[:NUMBER]`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FormattedValue):
            for part in ast.walk(node.value):
                upper = part.slice.upper if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice) else 0
                value = upper.value if isinstance(upper, ast.Constant) else 0
                if isinstance(value, int) and value >= LEAST:
                    yield node.lineno


def test_no_message_cuts_a_text_without_a_mark() -> None:
    assert list(cuts('f"{name[:80]!r} and {more[:5]} of {words[:MOST]}"')) == [1]
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{line}" for path in ROOT.rglob("*.py") for line in cuts(path.read_text())
    }
    assert {one for one in found if one.partition(":")[0] not in NAMES} == set()


def test_a_text_is_whole_or_marked() -> None:
    assert shortened("abcd", 4) == "abcd" and shortened("abcde", 4) == "abcd…" and shortened("", 4) == ""
