"""JSON from outside that lies deeper than any of this program's is refused, before whatever walks through it ends."""

from __future__ import annotations

import pytest

from inspector.records.json_text import DEEPEST, read_json


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}"), ('[{"b":', "}]")])
@pytest.mark.parametrize("depth", [DEEPEST + 1, 500, 900, 100_000])
@pytest.mark.parametrize("raw", [False, True])
def test_what_is_nested_too_deeply_is_refused(opens: str, closes: str, depth: int, raw: bool) -> None:
    text = opens * depth + "1" + closes * depth
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(text.encode() if raw else text)


def test_what_lies_as_deep_as_is_allowed_is_read() -> None:
    found = read_json("[" * DEEPEST + "1" + "]" * DEEPEST)
    for _ in range(DEEPEST):
        (found,) = found
    assert found == 1


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert read_json("[" + ",".join(["[]"] * 10_000) + "]") == [[]] * 10_000
