"""File names from names of layers and models: plain, short, within the folder, and no device of Windows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.records.file_names import MOST, RESERVED, file_stem


@given(st.text(max_size=300))
def test_any_name_is_a_plain_one(name: str) -> None:
    stem = file_stem(name, "run")
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", stem) and len(stem.encode()) <= MOST + 1
    assert not stem.endswith(".") and stem.partition(".")[0].lower() not in RESERVED


@pytest.mark.parametrize(
    "name, stem",
    [
        ("char-lstm", "char-lstm"), ("layers.0.h", "layers.0.h"), ("../../etc/passwd", "_.._etc_passwd"), ("CON", "CON_"), ("nul.h5", "nul.h5_"),
        ("com1", "com1_"), ("console", "console"), ("a b:c", "a_b_c"), ("x" * 500, "x" * MOST), ("", "run"), ("..", "run-"),
    ],
)  # fmt: skip
def test_names(name: str, stem: str) -> None:
    found = file_stem(name, "run")
    assert found == stem or (stem == "run-" and found.startswith(stem))


def test_names_of_which_nothing_is_left_are_told_apart() -> None:
    assert len({file_stem(name, "run") for name in ("日本", "日本語", "…", "")}) == 4
