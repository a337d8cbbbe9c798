"""Counts in sentences."""

from __future__ import annotations


def counted(count: float | None, word: str, form: str = "") -> str:
    """So many of something: "1 number", "2 numbers"; "1,200 steps" with the form ",". `count`: None if unknown."""
    text = str(count) if count is None else f"{count:{form}}"
    return f"{text} {word}{'' if text == '1' else 's'}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, rounded as an estimate is."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds < 10 else f"{5 * round(seconds / 5)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"
