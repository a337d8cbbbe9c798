"""Series of trainings that lie just on one side of a limit: losses made of levels, orders with so many pairs the wrong
way round, and what chance says of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.support.training_series import Floats

BLOCK = 20
Series = Mapping[str, Floats]


def levels(*values: float) -> Floats:
    """A loss of twenty levels."""
    assert len(values) == 20
    return np.repeat(np.asarray(values, np.float64), BLOCK)


def fallen_to_1(after: Sequence[float], first: float = 2.0) -> Floats:
    """Down from `first` to 1, which is the lowest block, and on by these."""
    return levels(*np.linspace(first, 1.0, 20 - len(after)), *after)


def with_inversions(count: int, of: int) -> list[int]:
    """An order of 0 … n − 1 in which so many pairs stand the wrong way round."""
    order: list[int] = []
    for n in range(of):
        back = min(count, n)
        order.insert(n - back, n)
        count -= back
    return order


def jump(height: float, points: int, first: float = 1.0) -> Floats:
    """A loss of 1 (the first fifty points may be higher) that is higher for some points; its spread counts as 0.01."""
    loss = np.ones(400)
    loss[:50] = first
    loss[200 : 200 + points] += height
    return loss


def early_and_late(inversions: int) -> Floats:
    """A loss that falls by 1 % in all, in perfect order over the first half, and in the second with pairs that do not."""
    late = [0.994 - 0.0004 * n for n in with_inversions(inversions, 10)]
    return levels(*np.linspace(1.0, 0.995, 10), *late)


def rising(inversions: int) -> Floats:
    """Down from 10 to 1, and on over eight blocks of which so many pairs are the wrong way round; nine with the lowest."""
    return fallen_to_1([5.6 + 0.2 * n for n in with_inversions(inversions, 8)], first=10.0)


def by_chance(inversions: int, of: int) -> float:
    """How often a random order of 0 … n − 1 has so many pairs the wrong way round, or fewer: counted, one place after
    the other (each new number comes before 0 to n of the others)."""
    counts = [1]
    for n in range(1, of):
        longer = [0] * (len(counts) + n)
        for before, ways in enumerate(counts):
            for back in range(n + 1):
                longer[before + back] += ways
        counts = longer
    return sum(counts[: inversions + 1]) / sum(counts)


def most_in_order(p: float, of: int) -> int:
    """The most pairs the wrong way round that chance has with a probability below p."""
    return max(count for count in range(of * (of - 1) // 2) if by_chance(count, of) < p)


RISEN = max(count for count in range(36) if by_chance(count, 9) <= 0.05)
"""The most pairs of nine blocks that are the wrong way round where they rise for good."""
