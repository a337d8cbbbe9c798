"""About how long a run still takes: what is left of its work, at the speed of what was done, lately above all.

Work is counted before it is done (engine/trace/work.py), and no kind of it at the same speed as another: calls of small
operations suffer more from a busy machine than products of large matrices. So a range is told where speeds differed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from inspector.records import duration

STEP = 0.02
"""The share of the work that is timed as one: less is a matter of when it is reported."""
LEAST_SECONDS = 0.5
"""That must be timed before they say anything."""
HALVED = 0.2
"""The share of the work after which what was timed before counts half."""
LEAST_SPREAD, OF_ONE = 0.25, 0.5
"""By how much the logarithm of the speed of the rest may differ in any case; and what a single step adds, many less."""
CERTAIN, EVEN = 0.4, 0.25
"""The spread up to which one number is told, where the speeds that were seen differ by no more than the second: runs on
a busy machine, whose speeds differed by 0.35, took 1.4 to 1.8 times the one number that was told of them."""
FASTER, SLOWER, MOST = 0.7, 3.0, 3.0
"""How many spreads a range reaches to either side, and how many times what is expected at most: what comes last is made
of more and smaller operations than what came before, and was slower in nine of nine runs that were recorded. Of ten
more, on a busy machine, 98 % of the times that were left lay within (91 % with 0.5 and 2.0)."""
OVERDUE = 0.25
"""Of the time for which nothing was reported, which is still expected where it should have ended: what takes longer
than it should may take longer still."""
TOLD_SECONDS = 2.0
"""Less than that is not told."""


class Remaining:
    """Takes reports (done, total) of work in one unit; a report with another total begins another part.

    Counter-example: where what comes last is slower by far than all before, the time that is told is too short until
    some of that is done.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Nothing is known yet."""
        self._total = self._share = 0.0
        self._at = self._clock()
        self._steps: list[tuple[float, float]] = []
        """(share of the work, seconds) of what was done."""

    def take(self, done: float, total: float) -> None:
        """One report; total 0 says nothing."""
        now, share = self._clock(), done / total if total > 0 else 0.0
        if total != self._total or total <= 0:
            self._total, self._share, self._at, self._steps = total, share, now, []
        elif share - self._share >= STEP:
            self._steps.append((share - self._share, now - self._at))
            self._share, self._at = share, now

    @property
    def seconds(self) -> float | None:
        """Seconds from now, None where they are not known."""
        late = self._clock() - self._at
        if not self._steps or sum(took for _, took in self._steps) + late < LEAST_SECONDS:
            return None
        work, took = self._timed()
        rest = max(0.0, 1.0 - self._share)
        step = min(rest, sum(share for share, _ in self._steps) / len(self._steps))
        if late > took / work * step:  # the present step is slower than those before, and what follows may be
            took, work, rest, late = took + late, work + step, rest - step, 0.0
        return max(took / work * rest - late, OVERDUE * (self._clock() - self._at))

    def _timed(self) -> tuple[float, float]:
        """Work and seconds so far; the older they are, the less they count."""
        work = took = 0.0
        for share, seconds in self._steps:
            fading = 0.5 ** (share / HALVED)
            work, took = fading * work + share, fading * took + seconds
        return work, took

    @property
    def spread(self) -> float:
        """By how much the logarithm of the time that is left may be wrong: by as much as speeds differed, or more
        where few were seen."""
        return max(self._differed, LEAST_SPREAD + OF_ONE / math.sqrt(len(self._steps)))

    @property
    def _differed(self) -> float:
        """The root mean square of the logarithms of the speeds that were seen, around the one that is expected."""
        work, took = self._timed()
        logs = [(share, math.log(max(seconds, 1e-3) * work / (share * took))) for share, seconds in self._steps]
        square = sum(share * log**2 for share, log in logs) / sum(share for share, _ in logs)
        return math.sqrt(square)

    @property
    def bounds(self) -> tuple[float, float]:
        """Seconds between which the rest is expected to take; (0, ∞) where nothing is known."""
        left = self.seconds
        if left is None:
            return 0.0, math.inf
        return left * math.exp(-FASTER * self.spread), left * min(MOST, math.exp(SLOWER * self.spread))

    def words(self) -> str:
        """What is told: "about 12 s left", or from when to when, or "" where it is not known, or short."""
        left = self.seconds
        if left is None:
            return ""
        low, high = self.bounds
        if self.spread <= CERTAIN and self._differed <= EVEN:
            return f"about {duration(left)} left" if left >= TOLD_SECONDS else ""
        if high < TOLD_SECONDS:
            return ""
        least, most = duration(low), duration(high)
        if low < TOLD_SECONDS or least == most:
            return f"up to {most} left"
        number, _, unit = least.partition(" ")
        return f"about {number if most.endswith(f' {unit}') else least} to {most} left"
