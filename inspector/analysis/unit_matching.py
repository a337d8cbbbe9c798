"""Which units are on exactly in a selected range of steps, and where else they are on together. numpy only.

After LSTMVis (Strobelt, Gehrmann, Pfister & Rush 2018). A unit is on where its value is above a threshold; where values
have a sign, also where it is below minus the threshold (the sign of a hidden unit has no meaning by itself).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MOST_UNITS, MOST_SPANS = 12, 12
LEAST_F1, NEAR_BEST = 0.5, 0.75
"""Units near the best: F1 at least 0.5, and at least three quarters of the best one's."""
SCORED_ENTRIES = 1 << 23
"""Numbers that one scoring reads (32 MB of float32): 4,000 steps of 2,000 units."""
LEAST_MARGIN = 8
WIDE = "\u2007"  # a space that is as wide as a digit


@dataclass(frozen=True, slots=True)
class Match:
    """A unit that fits a range: `sign` −1 where it is on by being negative; `exact` by LSTMVis' rule."""

    unit: int
    sign: int
    f1: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Steps first … last with most of the units on together; `share` of them on, on average; `score` in 0 … 1."""

    first: int
    last: int
    share: float
    score: float


def longest_range(units: int) -> int:
    """How many steps a range may have so that it and as much on both sides are read within the budget."""
    return max(1, SCORED_ENTRIES // max(1, units) // 3)


def neighbourhood(first: int, last: int, steps: int) -> tuple[int, int]:
    """(start, stop) of the range and as many steps on either side, at least 8, as far as there are any."""
    margin = max(LEAST_MARGIN, last - first + 1)
    return max(0, first - margin), min(steps, last + 1 + margin)


def score_units(values: Array, inside: slice, threshold: float, *, signed: bool) -> list[Match]:
    """All units by how exactly they are on inside a range: best first.

    values (t, u) are the neighbourhood of the range, `inside` the range within it. The score is F1 of "on" as a
    prediction of "inside"; exact means on throughout, and off at the step before and at the step after.
    """
    matches = _scores(values > threshold, inside)
    signs = np.ones(values.shape[1], np.int64)
    if signed:
        other = _scores(values < -threshold, inside)
        better = other[0] > matches[0]
        matches = (np.where(better, other[0], matches[0]), np.where(better, other[1], matches[1]))
        signs = np.where(better, -1, 1)
    f1, exact = matches
    order = np.lexsort((np.arange(len(f1)), -f1, ~exact))
    return [Match(int(u), int(signs[u]), float(f1[u]), bool(exact[u])) for u in order]


def _scores(on: npt.NDArray[np.bool_], inside: slice) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """(F1, exact) of every unit, (u,) each, from on (t, u)."""
    within = on[inside]
    hits, all_on, length = within.sum(0), on.sum(0), len(within)
    f1 = 2.0 * hits / np.maximum(1, all_on + length)
    exact = hits == length
    for edge in (inside.start - 1, inside.stop):
        if 0 <= edge < len(on):
            exact &= ~on[edge]
    return f1, exact


def choose(matches: Sequence[Match]) -> list[Match]:
    """The units worth searching for together: the exact ones, and those near the best F1; at most 12, at least one.

    They are the first of the matches, which come from `score_units`.
    """
    if not matches:
        return []
    least = max(LEAST_F1, NEAR_BEST * max(match.f1 for match in matches))
    return [match for match in matches[:MOST_UNITS] if match.exact or match.f1 >= least] or list(matches[:1])


def states_of(values: Array, matches: Sequence[Match], threshold: float) -> npt.NDArray[np.bool_]:
    """(t, m) True where a chosen unit is on, from its values (t, m) in the order of the matches."""
    signs = np.array([match.sign for match in matches])
    return np.asarray(values * signs > threshold)


def find_spans(on: npt.NDArray[np.bool_], length: int, avoid: tuple[int, int]) -> list[Span]:
    """Runs of steps in which more than half of the units (t, m) are on, the best first.

    The score is the share of units on times the likeness of lengths, min/max. Runs that touch `avoid` (first, last),
    the range itself, are left out.
    """
    count = on.sum(1)
    together = np.concatenate(([False], 2 * count > on.shape[1], [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(together))
    first, stop = edges[0::2], edges[1::2]
    elsewhere = (stop <= avoid[0]) | (first > avoid[1])
    first, stop = first[elsewhere], stop[elsewhere]
    total = np.concatenate(([0], np.cumsum(count)))
    size = stop - first
    share = (total[stop] - total[first]) / np.maximum(1, size * on.shape[1])
    score = share * np.minimum(size, length) / np.maximum(1, np.maximum(size, length))
    best = np.argsort(-score, kind="stable")[:MOST_SPANS]
    return [Span(int(first[i]), int(stop[i]) - 1, float(share[i]), float(score[i])) for i in best]


def word_at(names: Sequence[str], step: int, steps: int) -> tuple[int, int]:
    """(first, last) of the word around a step where tokens are characters or pieces; without names, five steps."""
    if not names or step >= len(names):
        return max(0, step - 2), min(max(0, steps - 1), step + 2)
    while step + 1 < len(names) and not names[step].strip():
        step += 1
    while step > 0 and not names[step].strip():
        step -= 1
    first = last = step
    while first > 0 and names[first - 1].strip() and step - first < 24:
        first -= 1
    while last + 1 < len(names) and names[last + 1].strip() and last - step < 24:
        last += 1
    return first, last


def row_label(match: Match, searched: bool, digits: int = 1) -> str:
    """A unit on the axis: its number, − where it is on by being negative, its score; columns as wide as digits are."""
    sign = "−" if match.sign < 0 else ""
    unit = f"{sign}{match.unit}".rjust(digits + 1, WIDE)
    return f"{'•' if searched else WIDE} {'✓' if match.exact else WIDE} {unit}  {match.f1:.2f}"
