"""Two sequences side by side: which of their members belong together, and which only one has.

Myers 1986, "An O(ND) difference algorithm and its variations": time grows with the number of differences, so that two
runs of the same code are aligned in one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

MOST_DIFFERENCES = 2000
"""Beyond so many the rest is not aligned: memory grows with their square (16 MB)."""


def aligned(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[list[tuple[int, int]], bool]:
    """(pairs (i, j) of members that belong together, in order; whether all could be aligned).

    Where there are too many differences, only what is equal at the beginning and at the end is paired.
    """
    first = 0
    while first < min(len(a), len(b)) and a[first] == b[first]:
        first += 1
    last = 0
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        last += 1
    middle = _myers(a[first : len(a) - last], b[first : len(b) - last])
    head = [(n, n) for n in range(first)]
    tail = [(len(a) - last + n, len(b) - last + n) for n in range(last)]
    return [*head, *((first + i, first + j) for i, j in middle or ()), *tail], middle is not None


def aligned_twice(
    a: Sequence[tuple[Hashable, Hashable]], b: Sequence[tuple[Hashable, Hashable]]
) -> tuple[list[tuple[int, int]], bool]:  # fmt: skip
    """As `aligned`, by the first key of each member; what that leaves between two pairs, by the second."""
    firm, whole = aligned([one for one, _ in a], [one for one, _ in b])
    found: list[tuple[int, int]] = []
    i = j = 0
    for m, n in [*firm, (len(a), len(b))]:
        gap, told = aligned([one for _, one in a[i:m]], [one for _, one in b[j:n]])
        found += [(i + p, j + q) for p, q in gap]
        found += [(m, n)] if m < len(a) and n < len(b) else []
        whole = whole and told
        i, j = m + 1, n + 1
    return found, whole


def _myers(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]] | None:
    """The pairs of a shortest edit script, None where it is too long. i counts in a, j in b, k = i − j."""
    if not a or not b:
        return []
    furthest: list[dict[int, int]] = []
    for d in range(min(len(a) + len(b), MOST_DIFFERENCES) + 1):
        ends: dict[int, int] = {}
        for k in range(-d, d + 1, 2):
            i = _begins(furthest, d, k)[0] if d else 0
            while i < len(a) and 0 <= i - k < len(b) and a[i] == b[i - k]:
                i += 1
            ends[k] = i
            if i >= len(a) and i - k >= len(b):
                return _back(furthest, d, k, i)
        furthest.append(ends)
    return None


def _begins(furthest: Sequence[dict[int, int]], d: int, k: int) -> tuple[int, int]:
    """(where the run of equal members on diagonal k begins after d differences, the diagonal that it comes from)."""
    before = furthest[d - 1]
    if k == -d or (k != d and before[k - 1] < before[k + 1]):
        return before[k + 1], k + 1  # a member that only b has
    return before[k - 1] + 1, k - 1


def _back(furthest: Sequence[dict[int, int]], d: int, k: int, i: int) -> list[tuple[int, int]]:
    """The pairs, found from the end to the beginning."""
    pairs: list[tuple[int, int]] = []
    while d:
        start, before = _begins(furthest, d, k)
        pairs += [(n, n - k) for n in range(i - 1, start - 1, -1)]
        d, k, i = d - 1, before, furthest[d - 1][before]
    pairs += [(n, n - k) for n in range(i - 1, -1, -1)]
    return pairs[::-1]
