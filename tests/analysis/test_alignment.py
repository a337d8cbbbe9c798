"""Alignment: pairs are equal and in order, and as many as a longest common subsequence has."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.divergence import alignment
from inspector.analysis.divergence.alignment import aligned, aligned_twice

TEXT = st.text("abcd", max_size=14)


def longest(a: str, b: str) -> int:
    """By dynamic programming."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(before[j + 1], row[j])
    return row[-1]


@given(TEXT, TEXT)
def test_as_many_pairs_as_can_be(a: str, b: str) -> None:
    pairs, whole = aligned(a, b)
    assert whole and all(a[i] == b[j] for i, j in pairs)
    assert all(i < m and j < n for (i, j), (m, n) in itertools.pairwise(pairs))
    assert len(pairs) == longest(a, b)


@given(TEXT, TEXT)
def test_the_second_key_only_fills_gaps(a: str, b: str) -> None:
    one, other = [(x, "z") for x in a], [(y, "z") for y in b]
    pairs, whole = aligned_twice(one, other)
    assert whole and set(aligned(a, b)[0]) <= set(pairs)
    assert all(i < m and j < n for (i, j), (m, n) in itertools.pairwise(pairs))


def test_too_many_differences_leave_beginning_and_end(monkeypatch: object) -> None:
    kept, alignment.MOST_DIFFERENCES = alignment.MOST_DIFFERENCES, 4
    try:
        pairs, whole = aligned("abcdefghxyz", "ab1234567890xyz")
    finally:
        alignment.MOST_DIFFERENCES = kept
    assert not whole and pairs == [(0, 0), (1, 1), (8, 12), (9, 13), (10, 14)]
