"""JSON from outside as numbers by name: bounded in size and depth, with NaN and Infinity as they are written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from inspector.records.json_text import NamedTwiceError, read_json
from inspector.records.unreadable import why_unreadable

DEEPEST = 6
"""Levels of objects inside objects whose numbers are read."""
MOST_NUMBERS = 20_000
"""Numbers in one row."""
LITERALS = {
    "NaN": math.nan, "nan": math.nan, "Infinity": math.inf, "inf": math.inf, "-Infinity": -math.inf, "-inf": -math.inf,
}  # fmt: skip
"""Texts that stand for numbers: strict JSON has no other way to write these."""


class BadJsonError(ValueError):
    """Text that is not JSON, is nested too deeply, or has two values of one name, of which nobody knows the right one;
    the message is the end of a sentence."""


def parsed(text: str | bytes) -> Any:
    """The value in a text. Raises BadJsonError."""
    try:
        return read_json(text, once=True)
    except RecursionError:
        raise BadJsonError("it is nested too deeply") from None
    except NamedTwiceError as problem:
        raise BadJsonError(f"it {problem}") from None
    except ValueError as problem:  # also bytes that are not UTF-8, and whole numbers of thousands of digits
        raise BadJsonError(f"it is not JSON ({why_unreadable(problem)})") from None


def number_of(value: Any) -> float | None:
    """A number, or a text that stands for NaN or Infinity; None for anything else. True and False are no numbers."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return LITERALS.get(value) if isinstance(value, str) else None


def numbers_in(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row by name, those of objects inside it as `outer/inner`. Objects with a "_type" are left out:
    histograms, pictures, tables."""
    found: dict[str, float] = {}
    for name, value in _walk(row, "", 0):
        found[name] = value
        if len(found) >= MOST_NUMBERS:
            break
    return found


def _walk(row: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, float]]:
    for key, value in row.items():
        number = number_of(value)
        if number is not None:
            yield before + key, number
        elif isinstance(value, dict) and "_type" not in value and depth < DEEPEST:
            yield from _walk(value, f"{before}{key}/", depth + 1)
