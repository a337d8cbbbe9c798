"""Whether two descriptions of a channel, each with its numbers, can be compared, over which cells, and if not why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.coordinates import numbers_along
from inspector.capture.view import View
from inspector.records import ITERATION_DOMAIN, Channel

TIMES = "×"
"""The unit of a ratio."""
FROM_THE_FIRST = frozenset({"step", "query", "key", "source", "start", "lag", "iteration"})
"""Dims along which both sides count from the first position, so that a longer and a shorter one have a common part.
Of others (units, heads, classes) position 3 of one side has nothing to do with position 3 of another number of them."""
MOST_SHOWN = 30
"""Letters of a name that are shown in a reason."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One side of a comparison: a frame of a capture (-1: the newest of each channel). `name` is for sentences."""

    view: View
    frame: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of two sides of a channel: the channel that describes it over `extent`, or the `reason` why there
    is none.

    `separate`: the channel declares that its numbers are read one run at a time.
    """

    channel: Channel | None = None
    extent: tuple[int, ...] = ()
    reason: str = ""
    separate: bool = False


class Names:
    """Where the names of the positions of two sides differ first, label domain by label domain."""

    def __init__(self, before: Reference, after: Reference) -> None:
        self._sides = (before, after)
        self._known: dict[str, tuple[tuple[int, int], tuple[int, str, str] | None]] = {}

    def count(self, domain: str) -> tuple[int, int]:
        """How many names each side has now; the differences are found again where that has changed."""
        one, other = (side.view.labels(domain, side.frame) for side in self._sides)
        count = (len(one), len(other))
        if domain not in self._known or self._known[domain][0] != count:
            pairs = enumerate(zip(one, other, strict=False))
            self._known[domain] = (count, next(((i, a, b) for i, (a, b) in pairs if a != b), None))
        return count

    def difference(self, domain: str) -> tuple[int, str, str] | None:
        """(position, name on one side, name on the other) of the first that differ; None where none does."""
        if domain not in self._known:
            self.count(domain)
        return self._known[domain][1]


def judge(name: str, before: Reference, after: Reference, names: Names | None) -> Verdict:
    """The verdict on one channel. Without `names` these are not compared: the second side is the first one after a
    change of its input or model, and tokens that differ are that change."""
    sides = (before, after)
    having = [side.name for side in sides if name in side.view.channels and side.view.revision(name, side.frame)]
    if len(having) < len(sides):
        return Verdict(reason=f"Only {having[0]} has it." if having else "Neither has it.")
    first, second = (side.view.channel(name, side.frame) for side in sides)
    if "separate" in (first.compare, second.compare):
        return Verdict(separate=True)
    reason = _kinds_differ(first, second, before.name, after.name)
    if reason:
        return Verdict(reason=reason)
    lengths = [side.view.extent(name, side.frame) for side in sides]
    extent = tuple(min(pair) for pair in zip(*lengths, strict=True))
    reason = _shapes_differ(second, *lengths) or ("" if names is None else _names_differ(second, extent, sides, names))
    if reason:
        return Verdict(reason=reason)
    return Verdict(_described(first, second, extent, lengths, sides), extent)


def _kinds_differ(first: Channel, second: Channel, before: str, after: str) -> str:
    for field, word in (
        ("kind", "kind"), ("dims", "axes"), ("compare", "comparison"), ("unit", "unit"), ("labels", "labels"),
    ):  # fmt: skip
        one, other = getattr(first, field), getattr(second, field)
        if field == "labels" and one != other:
            return f"Its {_named_otherwise(one, other)} are not the same in {before} and in {after}."
        if one != other:
            return f"It has the {word} {_cut(one)} in {before}, and {_cut(other)} in {after}."
    if not (first.dtype.startswith("float") and second.dtype.startswith("float")):
        return "Its numbers are indices, counts or marks, which do not subtract."
    return ""


def _named_otherwise(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> str:
    """Which names along which axis two descriptions do not have in common."""
    dim = next(dim for dim in (*one, *other) if one.get(dim) != other.get(dim))
    names, others = one.get(dim, ()), other.get(dim, ())
    if len(names) != len(others):
        return f"positions along {dim}, {len(names)} and {len(others)} by name,"
    first = next(n for n, pair in enumerate(zip(names, others, strict=True)) if pair[0] != pair[1])
    return f"names along {dim}, {_cut(names[first])} and {_cut(others[first])},"


def _shapes_differ(channel: Channel, one: Sequence[int], other: Sequence[int]) -> str:
    for dim, n, m in zip(channel.dims, one, other, strict=True):
        if n != m and dim not in FROM_THE_FIRST:
            return f"Its shapes differ: {dim} {n} and {dim} {m}."
    if 0 in one or 0 in other:
        return "One of the two has no numbers."
    return ""


def _names_differ(channel: Channel, extent: tuple[int, ...], sides: Sequence[Reference], names: Names) -> str:
    """Where the positions of an axis have other names or numbers on each side: they do not refer to the same things."""
    for dim, length in zip(channel.dims, extent, strict=True):
        domain = channel.domain(dim)
        found = names.difference(domain)
        if found is not None and found[0] < length:
            what = "tokens" if dim in FROM_THE_FIRST else f"names of {dim}"
            return f"Their {what} differ from {dim} {found[0]} on: {_cut(found[1])} and {_cut(found[2])}."
        if ITERATION_DOMAIN in (dim, domain):
            one, other = (numbers_along(side.view, domain, side.frame) for side in sides)
            if not _same_numbers(one, other, length):
                return "They were taken at different iterations."
    return ""


def _same_numbers(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None, length: int) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one[:length], other[:length], equal_nan=True))


def _described(
    first: Channel,
    second: Channel,
    extent: tuple[int, ...],
    lengths: Sequence[Sequence[int]],
    sides: Sequence[Reference],
) -> Channel:
    """The channel that the comparison has: what it is now called, its unit, and how both sides were computed."""
    dtype = str(np.result_type(first.dtype, second.dtype, np.float32))
    method = second.method
    if first.method != second.method:
        method = f"{sides[0].name}: {first.method}; {sides[1].name}: {second.method}"
    for dim, n, m, common in zip(second.dims, *lengths, extent, strict=True):
        if n != m:
            method += f"; the first {common} along {dim}, which both have"
    same = replace(second, shape=extent, dtype=dtype, method=method, limits=None, fill=None)
    if second.compare == "ratio":
        return replace(same, scale="ratio", unit=TIMES)
    return replace(same, title=f"Δ {second.title}", scale="diverging")


def _cut(value: object) -> str:
    text = value if isinstance(value, str) else " × ".join(value) if isinstance(value, tuple) else str(value)
    shown = repr(text) if isinstance(value, str) else text
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…"
