"""Which units are on exactly in a selected range of steps, and where else they are on together. numpy only.

After LSTMVis (Strobelt, Gehrmann, Pfister & Rush 2018). A unit is on where its value is above a threshold; where values
have a sign, also where it is below minus the threshold (the sign of a hidden unit has no meaning by itself). NaN that a
model made is beyond no threshold: such a unit is not on. A cell that is not known (`known` False) is neither on nor off
and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Marks = npt.NDArray[np.bool_]
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


def score_units(
    values: Array, inside: slice, threshold: float, *, signed: bool, known: Marks | None = None
) -> list[Match]:
    """All units by how exactly they are on inside a range: best first.

    values (t, u) are the neighbourhood of the range, `inside` the range within it, `known` (t, u) which of them are
    known (None: all). The score is F1 of "on" as a prediction of "inside", over the known steps of each unit; exact
    means on throughout, and off at the step before and at the step after, all of them known. A unit of which no step
    inside is known has no score and is left out.
    """
    there = np.ones(values.shape, np.bool_) if known is None else known
    f1, exact = _scores(np.asarray(values > threshold) & there, there, inside)
    signs = np.ones(values.shape[1], np.int64)
    if signed:
        other = _scores(np.asarray(values < -threshold) & there, there, inside)
        better = other[0] > f1
        f1, exact = np.where(better, other[0], f1), np.where(better, other[1], exact)
        signs = np.where(better, -1, 1)
    order = np.lexsort((np.arange(len(f1)), -f1, ~exact))
    scored: Marks = np.asarray(there[inside].any(0))
    return [Match(int(u), int(signs[u]), float(f1[u]), bool(exact[u])) for u in order if scored[u]]


def _scores(on: Marks, known: Marks, inside: slice) -> tuple[npt.NDArray[np.float64], Marks]:
    """(F1, exact) of every unit, (u,) each, from on and known (t, u); what is on is known."""
    hits, all_on, length = on[inside].sum(0), on.sum(0), known[inside].sum(0)
    f1 = 2.0 * hits / np.maximum(1, all_on + length)
    exact = hits == len(on[inside])
    for edge in (inside.start - 1, inside.stop):
        if 0 <= edge < len(on):
            exact &= ~on[edge] & known[edge]
    return f1, exact


def choose(matches: Sequence[Match]) -> list[Match]:
    """The units worth searching for together: the exact ones, and those near the best F1; at most 12, at least one.

    They are the first of the matches, which come from `score_units`.
    """
    if not matches:
        return []
    least = max(LEAST_F1, NEAR_BEST * max(match.f1 for match in matches))
    return [match for match in matches[:MOST_UNITS] if match.exact or match.f1 >= least] or list(matches[:1])


def states_of(values: Array, matches: Sequence[Match], threshold: float, known: Marks | None = None) -> Marks:
    """(t, m) True where a chosen unit is on, from its values and which of them are known (t, m; None: all), in the
    order of the matches; False as well where it is not known."""
    signs = np.array([match.sign for match in matches], np.int64)
    on = np.asarray(values * signs > threshold)
    return on if known is None else on & known


def share_on(on: Marks, known: Marks) -> npt.NDArray[np.float64]:
    """(t,) the share of the known units (t, m) that is on at each step; NaN where none is known."""
    there: npt.NDArray[np.int64] = known.sum(1)
    return np.where(there > 0, on.sum(1) / np.maximum(1, there), np.nan)


def find_spans(on: Marks, length: int, avoid: tuple[int, int], known: Marks | None = None) -> list[Span]:
    """Runs of steps in which more than half of the units (t, m) are on, whatever those are that are not known; the
    best first.

    The score is the share of the known units that is on times the likeness of lengths, min/max. Runs that touch
    `avoid` (first, last), the range itself, are left out.
    """
    count = on.sum(1)
    there = np.full(len(on), on.shape[1]) if known is None else known.sum(1)
    together = np.concatenate(([False], 2 * count > on.shape[1], [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(together))
    first, stop = edges[0::2], edges[1::2]
    elsewhere = (stop <= avoid[0]) | (first > avoid[1])
    first, stop = first[elsewhere], stop[elsewhere]
    total, whole = (np.concatenate(([0], np.cumsum(each))) for each in (count, there))
    size = stop - first
    share = (total[stop] - total[first]) / np.maximum(1, whole[stop] - whole[first])
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
