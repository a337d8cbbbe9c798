"""How a loss moves over training: whether it falls, has diverged, or jumps; by medians of blocks, which neither
noise nor a single spike moves.

Neighbouring losses are not independent (the same data comes again, the model changes slowly), so tests that count every
iteration as a sample find trends in noise. Medians of blocks are nearly independent, and there are few of them, so a
test over them is honest about how little it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.analysis.rank_correlation import ordered_by_chance

Floats = npt.NDArray[np.float64]
BLOCKS = 20
LEAST = 60
"""Points from which a trend is judged: 3 in each block."""
WINDOW = 50
TRANSIENT = 0.05
"""Share of its size by which a loss may fall within the first block and be one that does not fall: a read-out that
begins at random is worse than guessing, and unlearns that within some iterations, whatever else is wrong. A judgement;
counter-example: a training that has all that it can gain, less than a twentieth, within its first block."""
NOISE = 6.0
"""Median absolute deviations by which a single point has to differ from a block: four standard deviations of a normal
spread."""
ABOVE = 0.5
"""Half as much again as the first point: a loss that ends above that has diverged, whatever its blocks show."""
RISE = 0.02
"""Share of its size up to which a loss that rises stays where it was: as for a plateau."""
DIP = 0.1
"""Of the depth of a dip below 0: how near to 0 a loss begins, stays and ends that is no more than that. A judgement."""
EARLY = 16
"""First points by whose signs a loss that is noise about 0 is told: a block, where that has more."""
POINTS = 4096
"""Points whose windows are compared together: 1.6 MB of numbers."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Attributes:
    blocks (k,): medians of k consecutive blocks; centres (k,): the x in their middle.
    spread: the median absolute deviation within blocks, from the block's median.
    first, best, last: the first block's median, the lowest, and the lower one of the last two.
    falls, late: probability of an order that falls as much, if blocks had no order (Mann–Kendall, one-sided); late is
        that of the second half alone.
    rises: the same of a rise since the lowest block; 1 where fewer than four blocks follow it.
    about_zero: whether the first points are noise about 0: their sign changes three times at least, and their median is
        within twice their own median absolute deviation of 0.
    """

    blocks: Floats
    centres: Floats
    spread: float
    began: float
    first: float
    best: float
    last: float
    falls: float
    late: float
    rises: float
    about_zero: bool = False

    def room(self, share: float) -> float:
        """How far a loss that stays may stray: a share of its size, or four times its spread within a block."""
        return max(4 * self.spread, share * abs(self.first))

    @property
    def lowest_at(self) -> float:
        """x in the middle of the lowest block."""
        return float(self.centres[int(np.argmin(self.blocks))])


def trend_of(x: Floats, y: Floats) -> Trend | None:
    """The trend of a curve (n,); points that are not finite are left out. None where fewer than LEAST are left."""
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if len(y) < LEAST:
        return None
    parts = np.array_split(np.arange(len(y)), BLOCKS)
    blocks = np.array([np.median(y[part]) for part in parts])
    spread = float(np.median(np.concatenate([np.abs(y[part] - np.median(y[part])) for part in parts])))
    lowest = int(np.argmin(blocks))
    after = blocks[lowest:]
    return Trend(
        blocks=blocks,
        centres=np.array([np.median(x[part]) for part in parts]),
        spread=spread,
        began=float(y[0]),
        first=float(blocks[0]),
        best=float(blocks.min()),
        last=float(blocks[-2:].min()),
        falls=ordered_by_chance(blocks, falling=True),
        late=ordered_by_chance(blocks[BLOCKS // 2 :], falling=True),
        rises=ordered_by_chance(after, falling=False) if len(after) > 4 else 1.0,
        about_zero=_is_about_zero(y[: max(EARLY, len(parts[0]))]),
    )


def _is_about_zero(early: Floats) -> bool:
    signs = np.sign(early[early != 0])
    middle = float(np.median(early))
    return int((signs[1:] != signs[:-1]).sum()) >= 3 and abs(middle) <= 2 * float(np.median(np.abs(early - middle)))


def is_flat(trend: Trend, share: float, p: float) -> bool:
    """Whether a loss stays where it was: it fell by no more than a share of its size (or its spread), no longer falls
    in an order that chance makes with a probability below `p`, and it did not rise by more either.

    Order alone is no fall: a net that only learns to guess comes down by half a per cent, in perfect order. So a small
    fall counts where it goes on in the second half, as that of a net that learns slowly does.
    """
    falling = trend.falls < p and trend.late < p
    first, second = float(trend.blocks[0]), float(trend.blocks[1])
    unlearned = not falling and 0 < first - second <= TRANSIENT * abs(first)
    gained = (second if unlearned else trend.first) - min(trend.best, trend.last)
    # where it rises by more it has diverged, which is another rule
    stays = trend.last - trend.best <= trend.room(share)
    # where no block is below the first, a fall is that from a rise in between, of a rate that is too large
    still = gained <= max(share * abs(trend.first), trend.spread) and stays and (not falling or gained <= 0)
    return still and not ends_above(trend, ABOVE)  # it rose within the first block, and has diverged


def hardly_falls(trend: Trend) -> bool:
    """Whether a loss comes down by no more than a read-out does that unlearns its random beginning, within any time."""
    gained = trend.first - trend.last
    at_once = fell_at_once(trend, TRANSIENT)
    return 0 <= gained <= TRANSIENT * abs(trend.first) and not at_once and not ends_above(trend, ABOVE)


def has_risen(trend: Trend, share: float, p: float) -> bool:
    """Whether a loss rose for good: blocks since the lowest rise in an order that chance makes with a probability up to
    `p`, and more than a share of what had been gained is lost again; and not next to nothing of its size."""
    gained, lost = trend.first - trend.best, trend.last - trend.best
    least = max(4 * trend.spread, RISE * abs(trend.first))
    return trend.rises <= p and lost > max(least, share * max(gained, 0.0))


def fell_at_once(trend: Trend, share: float) -> bool:
    """Whether a loss fell by more than a share of its first point, and beyond the spread, within the first block.

    What it did then is not in the blocks: it learned faster than they show, or unlearned a bad beginning.
    """
    return trend.began - trend.first > max(NOISE * trend.spread, share * abs(trend.began))


def is_a_surrogate(trend: Trend) -> bool:
    """Whether a loss begins at 0, to its noise, and goes below it: as that of a policy gradient does, whose value says
    nothing of what was learned, also where its noise ends with the last choice that is left to the policy, and where it
    comes back to 0 with that.
    Counter-example: a negative log-density that happens to begin at 0."""
    begins = trend.best < 0 and abs(trend.began) <= NOISE * trend.spread
    room = DIP * abs(trend.best)
    dips = trend.best < 0 and abs(trend.began) <= room and abs(trend.last) <= room and float(trend.blocks.max()) <= room
    return trend.about_zero or begins or dips


def ends_above(trend: Trend, share: float) -> bool:
    """Whether a loss ends above its first point, by more than a share of it and beyond the spread: an untrained model
    was better. Blocks do not show that of a loss that rises within the first one."""
    return trend.last - trend.began > max(NOISE * trend.spread, share * abs(trend.began))


@dataclass(frozen=True, slots=True)
class Jump:
    """A point far above those before it: where (index and x), its value, the median before, how many median absolute
    deviations above that, and after how many points the running median was reached again (-1: never)."""

    index: int
    x: float
    value: float
    before: float
    distance: float
    recovered: int


def jumps_of(x: Floats, y: Floats, factor: float) -> list[Jump]:
    """Points more than `factor` median absolute deviations above the median of the WINDOW points before them.

    The least deviation that counts is a hundredth of the median: a loss that hardly changes has one near 0. Points of
    one jump are told once, by the first.
    """
    found: list[Jump] = []
    ends = -1
    for n, middle, spread, distance in _far_above(y, factor):
        if n <= ends:
            continue
        recovered = _first_below(y, n, middle + spread)
        found.append(Jump(n, float(x[n]), float(y[n]), middle, distance, recovered))
        ends = n + recovered if recovered >= 0 else len(y)
    return found


def _far_above(y: Floats, factor: float) -> Iterator[tuple[int, float, float, float]]:
    """(index, median before, median absolute deviation before, distance in these) of every point that is far above;
    many points at a time, so that a hundred thousand take a part of a second and little memory."""
    for start in range(WINDOW, len(y), POINTS):
        here = y[start : start + POINTS]
        before = np.lib.stride_tricks.sliding_window_view(y[start - WINDOW : start + len(here) - 1], WINDOW)
        with np.errstate(invalid="ignore"):  # infinities; the distance then is NaN, or infinite
            middle = np.median(before, axis=1)
            spread = np.median(np.abs(before - middle[:, None]), axis=1)
            spread = np.maximum(np.maximum(spread, 0.01 * np.abs(middle)), 1e-12)
            distance = (here - middle) / spread
        for at in np.flatnonzero(np.isfinite(distance) & (distance > factor)).tolist():
            yield start + at, float(middle[at]), float(spread[at]), float(distance[at])


def _first_below(y: Floats, start: int, level: float) -> int:
    """After how many points from `start` on the curve is at a level or below it, -1 for never: looked for in longer and
    longer parts, since most jumps are over soon."""
    first, size = start, WINDOW
    while first < len(y):
        below = y[first : first + size] <= level
        if below.any():
            return first - start + int(below.argmax())
        first, size = first + size, 2 * size
    return -1
