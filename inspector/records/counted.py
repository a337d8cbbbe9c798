"""Counts in sentences."""

from __future__ import annotations


def counted(count: float | None, word: str, form: str = "") -> str:
    """So many of something: "1 number", "2 numbers"; "1,200 steps" with the form ",". `count`: None if unknown."""
    text = str(count) if count is None else f"{count:{form}}"
    return f"{text} {word}{'' if text == '1' else 's'}"
