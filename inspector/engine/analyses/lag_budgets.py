"""How many starts, lags and directions products of step Jacobians may have within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.engine.analyses.directions import SeenSpread
from inspector.engine.errors import Unsupported
from inspector.engine.trace.work import Size, Work

LONGEST = 512
LAG_BUDGET, PATH_BUDGET = 3e10, 4e9
"""Multiplications that are spent on one layer, about a second and a tenth of it on one core; beyond that, fewer starts
are used. The second is for products of all paths that are compared with those of the direct path."""
LARGEST, FEWEST, PROBES = 1024, 8, 8
MOST = 256
"""Starts that are compared with the direct path."""
RETENTION_BUDGET = 3e7
"""Multiplications of gates (starts × lags × entries): limits the starts of a pass without full products."""


def spaced(count: int, t: int) -> list[int]:
    """`count` evenly spaced steps of 0 … t-2, both ends included where there are two."""
    return sorted({round(i * (t - 2) / max(1, count - 1)) for i in range(count)})


def which(starts: int, t: int, lags: int) -> str:
    """Which starts and lags a walk over t steps had, as text."""
    every = "every start" if starts == t - 1 else f"{starts} evenly spaced starts of {t - 1}"
    return f"{every}; lags up to {lags}"


def how_many(directions: int, size: int, spread: SeenSpread) -> str:
    """Along which directions norms were found, as text."""
    if directions == size:
        return "exact"
    return f"estimated from {directions} random orthonormal directions of {size} ({spread.words})"


class LagBudget:
    """Which starts, how many lags, and how many directions fit the budget, for t steps and s state entries."""

    def __init__(self, t: int, s: int) -> None:
        if t < 2:
            raise Unsupported("Products of Jacobians need at least two steps.")
        if s > LARGEST:
            raise Unsupported(f"Products of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries.")
        self.lags = min(t - 1, LONGEST)
        exact = int(LAG_BUDGET / (2.0 * s**3 * self.lags))
        self.directions = s if exact >= min(FEWEST, t - 1) else min(PROBES, s)
        affordable = int(LAG_BUDGET / (2.0 * s * s * self.directions * self.lags))
        self.starts = spaced(max(1, min(t - 1, max(FEWEST, affordable))), t)
        self.size, self.spread, self.steps = s, SeenSpread(), t

    @property
    def method(self) -> str:
        """How the norms were found, with the spread between directions as it was seen until now."""
        told = which(len(self.starts), self.steps, self.lags)
        return f"{how_many(self.directions, self.size, self.spread)}; {told}"


@dataclass(frozen=True, slots=True)
class PathBudget:
    """Lags, starts and directions of a comparison of all paths with the direct one, over t steps of s state entries."""

    lags: int
    starts: tuple[int, ...]
    directions: int
    whole: bool

    @classmethod
    def of(cls, t: int, s: int) -> PathBudget:
        """All directions where a few starts of them fit the budget, else random ones; starts evenly spaced."""
        lags = min(t - 1, LONGEST)
        fewest, whole = min(FEWEST, t - 1), s <= LARGEST
        exact = PATH_BUDGET / (2.0 * s**3 * lags) >= fewest
        directions = s if exact else min(PROBES, s)
        affordable = PATH_BUDGET / (2.0 * s * s * directions * lags) if whole else RETENTION_BUDGET / (s * lags)
        count = max(1, min(t - 1, MOST, max(fewest, int(affordable))))
        return cls(lags, tuple(spaced(count, t)), directions, whole)


def walk_work(size: Size) -> Work:
    """Of one walk over the steps for both products by lag; a step without a direct path takes half of it."""
    t, s = size.steps, size.state
    if size.diagonal:
        longest = min(t, LONGEST)
        return Work(numbers=4.0 * t * s * longest, calls=10.0 * longest)
    if t < 2 or s > LARGEST:
        return Work()
    lags, paths = LagBudget(t, s), PathBudget.of(t, s)
    rows = lags.directions * _pairs(lags.starts, lags.lags, t)
    if lags.directions == s or paths.directions == s:  # else both are found from the same products
        rows += paths.directions * _pairs(paths.starts, paths.lags, t)
    push, passes = (size.entries, 9) if lags.directions == s or size.built else (size.push, 18)
    copied = 4 * t * size.entries if size.built else 0.0
    return Work(rows * push, numbers=passes * rows * s + copied, calls=62.0 * t)


def _pairs(starts: Sequence[int], lags: int, t: int) -> float:
    """Starts and lags within t steps."""
    return float(sum(min(lags, t - 1 - start) for start in starts))
