"""JSON from outside: whatever text it is, a value or one kind of error.

Python's own parser raises RecursionError where brackets lie a thousand deep, and what lies almost as deep is read and
ends whatever walks through it later. A whole number of more than 4,300 digits is a ValueError of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

DEEPEST = 100
"""Lists and objects in each other that are read. What this program writes has 40 at most."""


class NamedTwiceError(ValueError):
    """An object with two values of one name, of which programs read different ones; the message is the end of a
    sentence."""


def read_json(text: str | bytes, *, parse_constant: Callable[[str], Any] | None = None, once: bool = False) -> Any:
    """The value in a text. Raises ValueError for anything that is no JSON, and for what is nested too deeply; with
    `once` NamedTwiceError where an object has two values of one name, of which the last one is taken otherwise."""
    try:
        if isinstance(text, str):
            value = _decoder(parse_constant, once).decode(text)
        else:
            value = json.loads(text, parse_constant=parse_constant, object_pairs_hook=_each_once if once else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as problem:
        raise ValueError(why_unreadable(problem)) from None
    except ValueError as problem:
        if "set_int_max_str_digits" in str(problem):  # words for who wrote the program
            raise ValueError("a whole number has more than 4,300 digits") from None
        raise
    if len(text) > DEEPEST and _brackets(text) > DEEPEST:
        _require_shallow(value)
    return value


@lru_cache(maxsize=16)
def _decoder(parse_constant: Callable[[str], Any] | None, once: bool) -> json.JSONDecoder:
    """One for all texts that are read so: `json.loads` makes another for each, which takes as long as a short text."""
    return json.JSONDecoder(parse_constant=parse_constant, object_pairs_hook=_each_once if once else None)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        known: set[str] = set()
        twice = next(name for name, _ in pairs if name in known or known.add(name))  # type: ignore[func-returns-value]
        raise NamedTwiceError(f"has two entries named {shortened(twice, 80)!r}")
    return found


def no_constant(word: str) -> None:
    """As `parse_constant`: NaN and Infinity are no JSON, and come out of a record as texts. Raises ValueError."""
    raise ValueError(f"the bare constant {word} is not JSON")


def _brackets(text: str | bytes) -> int:
    """At least how deep it lies: most texts have too few brackets for a closer look."""
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def _require_shallow(value: Any) -> None:
    """Level after level, not by recursion."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            part
            for one in level
            if isinstance(one, (dict, list))
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")
