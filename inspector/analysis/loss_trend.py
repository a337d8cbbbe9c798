"""How a loss moves over training: whether it falls, has diverged, or jumps; by medians of blocks, which neither
noise nor a single spike moves.

Neighbouring losses are not independent (the same data comes again, the model changes slowly), so tests that count every
iteration as a sample find trends in noise. Medians of blocks are nearly independent, and there are few of them, so a
test over them is honest about how little it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BLOCKS = 20
LEAST = 60
"""Points from which a trend is judged: 3 in each block."""
WINDOW = 50


@dataclass(frozen=True, slots=True)
class Trend:
    """Attributes:
    blocks (k,): medians of k consecutive blocks; centres (k,): the x in their middle.
    spread: the median absolute deviation within blocks, from the block's median.
    first, best, last: the first block's median, the lowest, and the lower one of the last two.
    falls: probability of an order that falls as much, if blocks had no order (Mann–Kendall, one-sided).
    rises: the same of a rise since the lowest block; 1 where fewer than four blocks follow it.
    """

    blocks: Floats
    centres: Floats
    spread: float
    first: float
    best: float
    last: float
    falls: float
    rises: float

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
        first=float(blocks[0]),
        best=float(blocks.min()),
        last=float(blocks[-2:].min()),
        falls=_ordered(blocks, "less"),
        rises=_ordered(after, "greater") if len(after) > 4 else 1.0,
    )


def is_flat(trend: Trend, share: float, p: float) -> bool:
    """Whether a loss stays where it was: it fell by no more than a share of its size (or its spread), in an order that
    chance makes with a probability of at least `p`, and it did not rise by more either."""
    gained = trend.first - min(trend.best, trend.last)
    # where it rises by more it has diverged, which is another rule
    stays = trend.last - trend.best <= trend.room(share)
    # where no block is below the first, a fall is that from a rise in between, of a rate that is too large
    return gained <= max(share * abs(trend.first), trend.spread) and stays and (trend.falls >= p or gained <= 0)


def _ordered(blocks: Floats, alternative: str) -> float:
    if np.ptp(blocks) == 0:
        return 1.0
    from scipy.stats import kendalltau  # two thirds of a second, which only who judges a training waits for

    return float(kendalltau(np.arange(len(blocks)), blocks, alternative=alternative).pvalue)


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
    for n in range(WINDOW, len(y)):
        if n <= ends:
            continue
        before = y[n - WINDOW : n]
        middle = float(np.median(before))
        spread = max(float(np.median(np.abs(before - middle))), 0.01 * abs(middle), 1e-12)
        distance = (float(y[n]) - middle) / spread
        if np.isfinite(distance) and distance > factor:
            back = np.flatnonzero(y[n:] <= middle + spread)
            recovered = int(back[0]) if len(back) else -1
            found.append(Jump(n, float(x[n]), float(y[n]), middle, distance, recovered))
            ends = n + recovered if recovered >= 0 else len(y)
    return found
