"""A number as a person or another program writes it."""

from __future__ import annotations


def as_number(word: str) -> float | None:
    """The number, NaN and infinities too; None for any other text. `1_0` is Python's own way of writing 10 and nobody
    else's: rather a slip."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None
