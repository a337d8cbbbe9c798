"""Two sequences of names aligned by what they have in common, in order: their longest common subsequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError

Positions = npt.NDArray[np.int64]
ONLY_FIRST, ONLY_SECOND = "− ", "+ "
"""Before the name of a position that only one side has."""
MOST_CELLS = 1 << 25
"""Pairs of names that are compared; beyond, the table of lengths would take more than 128 MiB."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Positions of two sequences beside each other.

    Attributes:
        first, second: (n,) the position on each side, -1 where it has none: a gap.
        names: (n,) the common name, or with a mark before it that of the only side that has the position.
    """

    first: Positions
    second: Positions
    names: tuple[str, ...]

    @property
    def common(self) -> int:
        """How many positions both sides have."""
        return int(((self.first >= 0) & (self.second >= 0)).sum())

    @property
    def sentence(self) -> str:
        """What was aligned, and what has no partner."""
        alone = [int((side < 0).sum()) for side in (self.second, self.first)]
        return (
            f"steps aligned by tokens: {self.common:,} in common, {alone[0]:,} only in the first, {alone[1]:,} only in "
            "the second"
        )


def align(one: Sequence[str], other: Sequence[str]) -> Alignment:
    """Align two sequences by a longest common subsequence; before a common name those of the first side stand first.

    Wagner and Fischer's table of lengths, a row at a time, in O(nm) after the equal beginning and end are taken away.
    Of several longest ones it is one. Raises CaptureError where the rest is too long.
    """
    head = _equal(one, other)
    tail = _equal(one[head:][::-1], other[head:][::-1])
    left, right = one[head : len(one) - tail], other[head : len(other) - tail]
    if len(left) * len(right) > MOST_CELLS:
        raise CaptureError(
            f"Their sequences are too long to be aligned: {len(left):,} and {len(right):,} steps that differ."
        )
    pairs = [(n, n) for n in range(head)]
    pairs += [(n + head, m + head) for n, m in _common(left, right)]
    pairs += [(len(one) - n, len(other) - n) for n in range(tail, 0, -1)]
    return _with_gaps(pairs, one, other)


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """How many names at the beginning are equal."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _common(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of positions of a longest common subsequence, in order."""
    codes: dict[str, int] = {}
    left, right = ([codes.setdefault(name, len(codes)) for name in side] for side in (one, other))
    row = np.asarray(right, np.int64)
    lengths = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for n, code in enumerate(left):
        best = np.maximum(lengths[n, 1:], lengths[n, :-1] + (row == code))
        np.maximum.accumulate(best, out=lengths[n + 1, 1:])
    n, m, found = len(left), len(right), []
    while n and m:
        if left[n - 1] == right[m - 1]:
            n, m = n - 1, m - 1
            found.append((n, m))
        elif lengths[n - 1, m] >= lengths[n, m - 1]:
            n -= 1
        else:
            m -= 1
    return found[::-1]


def _with_gaps(pairs: list[tuple[int, int]], one: Sequence[str], other: Sequence[str]) -> Alignment:
    first: list[int] = []
    second: list[int] = []
    names: list[str] = []
    n = m = 0
    for a, b in [*pairs, (len(one), len(other))]:
        first += [*range(n, a), *[-1] * (b - m)]
        second += [*[-1] * (a - n), *range(m, b)]
        names += [*(ONLY_FIRST + name for name in one[n:a]), *(ONLY_SECOND + name for name in other[m:b])]
        if a < len(one) and b < len(other):
            first.append(a)
            second.append(b)
            names.append(one[a])
        n, m = a + 1, b + 1
    return Alignment(np.asarray(first, np.int64), np.asarray(second, np.int64), tuple(names))
