"""Which heads are shown and in which order: sorted, grouped, and filtered by conditions that a person types."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from inspector.analysis.attention.head_table import Head, HeadTable

LAYER, TOGETHER = "layer", ""
"""Grouped by layer, or not at all."""
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "≤": operator.le, "≥": operator.ge, "<": operator.lt, ">": operator.gt,
    "=": operator.eq,
}  # fmt: skip
_CONDITION = re.compile(r"(?P<name>.+?)\s*(?P<how><=|>=|≤|≥|<|>|=)\s*(?P<number>[-+−]?[\d.]+(?:[eE][-+]?\d+)?)\s*\Z")


class ConditionError(ValueError):
    """A condition that cannot be read; the message says what there is."""


@dataclass(frozen=True, slots=True)
class Group:
    """Heads under one heading."""

    title: str
    heads: tuple[Head, ...]


def matching(table: HeadTable, text: str) -> Callable[[Head], bool]:
    """Whether a head meets all conditions of a text, separated by commas: `entropy > 2`, `layer = 3`, `head < 4`, or a
    word of a type or a place (`induction`, `decoder`). Raises ConditionError."""
    tests = [_test(table, part.strip()) for part in text.split(",") if part.strip()]
    return lambda head: all(test(head) for test in tests)


def _test(table: HeadTable, part: str) -> Callable[[Head], bool]:
    found = _CONDITION.match(part)
    if found is None:
        return _word(table, part)
    how, name = COMPARISONS[found["how"]], found["name"].strip()
    try:
        limit = float(found["number"].replace("−", "-"))
    except ValueError:
        raise ConditionError(f"{found['number']!r} is not a number.") from None
    if name.casefold() in ("layer", "head"):
        attribute = name.casefold()
        return lambda head: how(getattr(head, attribute), limit)
    key = _key(table, name)
    return lambda head: how(head.numbers.get(key, math.nan), limit)


def _key(table: HeadTable, name: str) -> str:
    """The key that is meant by a part of its title or of its signal: the shortest title, where several have it."""
    wanted = name.casefold()
    fitting = [key for key, title in table.keys.items() if wanted in f"{title}\n{key}".casefold()]
    if not fitting:
        there = ", ".join(("layer", "head", *table.keys.values()))
        raise ConditionError(f"There is no number {name!r} of heads; there are {there}.")
    return min(fitting, key=lambda key: len(table.keys[key]))


def _word(table: HeadTable, word: str) -> Callable[[Head], bool]:
    wanted = word.casefold()

    def meets(head: Head) -> bool:
        return any(wanted in text.casefold() for text in (head.place, *head.words.values()))

    if not any(meets(head) for head in table.heads):
        raise ConditionError(
            f"No head has {word!r} in its place or type; conditions read like 'entropy > 2, layer = 0'."
        )
    return meets


def arranged(
    table: HeadTable, *, sort: str = "", descending: bool = True, group: str = LAYER, text: str = ""
) -> tuple[Group, ...]:
    """The heads in groups: by `layer`, by a key of words, by quarters of a key of numbers, or in one (""); within a
    group sorted by a key of numbers (without it as the model has them). Heads without that number come last.

    Raises ConditionError for a text that cannot be read.
    """
    heads = [head for head in table.heads if matching(table, text)(head)] if text.strip() else list(table.heads)
    title = _titles(table, heads, group)
    if sort in table.keys:
        heads.sort(key=lambda head: _rank(head, sort, descending=descending))
    if not heads:
        return ()
    in_order = sorted(heads, key=lambda head: title(head)[0])
    return tuple(Group(words, tuple(own)) for (_, words), own in groupby(in_order, key=title))


def _rank(head: Head, key: str, *, descending: bool) -> tuple[bool, float]:
    value = head.numbers.get(key, math.nan)
    return math.isnan(value), -value if descending else value


def _titles(table: HeadTable, heads: Sequence[Head], group: str) -> Callable[[Head], tuple[float | str, str]]:
    """For each head: (where its group comes, what it is called)."""
    if group == LAYER:
        return lambda head: (head.layer, head.place)
    if group in table.words:
        return lambda head: (head.words.get(group, "not known"),) * 2
    if group not in table.keys:
        return lambda _head: (0, "")
    known = sorted(v for head in heads if not math.isnan(v := head.numbers.get(group, math.nan)))
    bounds = [known[min(len(known) - 1, round(len(known) * n / 4))] for n in (1, 2, 3)] if known else []

    def quarter(head: Head) -> tuple[float, str]:
        value = head.numbers.get(group, math.nan)
        if math.isnan(value):
            return 9.0, f"not known: {table.keys[group]}"
        at = sum(value >= bound for bound in bounds)
        return float(3 - at), f"{('lowest', 'second', 'third', 'highest')[at]} quarter of {table.keys[group]}"

    return quarter
