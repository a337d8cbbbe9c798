"""Counts in sentences: one of something is singular."""

from __future__ import annotations

import pytest

from inspector.records import counted


@pytest.mark.parametrize(("count", "form", "text"), [
    (1, "", "1 step"), (0, "", "0 steps"), (2, "", "2 steps"), (1200, ",", "1,200 steps"), (1.0, ".3g", "1 step"),
    (1.004, ".3g", "1 step"), (0.5, ".3g", "0.5 steps"), (None, "", "None steps"),
])  # fmt: skip
def test_one_is_singular(count: float | None, form: str, text: str) -> None:
    assert counted(count, "step", form) == text
