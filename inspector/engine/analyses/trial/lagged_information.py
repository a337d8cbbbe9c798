"""How much an input k steps back tells about a target beyond the newest input: conditional mutual information by lag.

Plug-in estimates of entropies, whose bias is known from a null in which the past of another sequence stands in the
place of the own one. One lag at a time: what only several inputs together tell (a parity) is not seen, so that the
lags found are some of those that are needed, not all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NULLS = 19
"""Draws of the null: the largest of 19 and the data is the data by chance in 1 case of 20."""
FEWEST_SEQUENCES = 8
"""From so many on, the null takes the past of another sequence; below, the own one, moved around by many steps."""
TABLE = 1 << 22
"""Cells up to which frequencies are counted in a table; beyond, by sorting."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Inputs and targets (n, t), −1 where there is none; `from_end`: sequences end, not begin, at the same column."""

    inputs: Ids
    targets: Ids

    @classmethod
    def of(cls, rows: Iterable[tuple[Ids, Ids]], *, from_end: bool) -> Pairs:
        """From (inputs (t,), targets (t,)) of each sequence; ids are numbered from 0."""
        known = list(rows)
        width = max((len(one) for one, _ in known), default=0)
        tables = np.full((2, len(known), width), -1, dtype=np.int64)
        for n, (inputs, targets) in enumerate(known):
            place = slice(width - len(inputs), width) if from_end else slice(0, len(inputs))
            tables[0, n, place], tables[1, n, place] = inputs, targets
        return cls(_numbered(tables[0]), _numbered(tables[1]))

    @property
    def count(self) -> int:
        """Targets that have an input."""
        return int(((self.targets >= 0) & (self.inputs >= 0)).sum())


@dataclass(frozen=True, slots=True)
class Information:
    """By lag (lag,), in nats.

    Attributes:
        found: the estimate less the mean of the null; lag 0 is I(y_t; x_t), the others I(y_t; x_{t−k} | x_t).
        spread: standard deviation of the null, which is the error of `found` where nothing depends.
        certain: whether the estimate is further from the null than any draw of it is, over all lags together.
        share: `found` by what x_t leaves unknown of the target (lag 0: by the target's entropy).
    """

    found: Floats
    spread: Floats
    certain: npt.NDArray[np.bool_]
    share: Floats


def information(pairs: Pairs, lags: int, seed: int = 5) -> Information:
    """The information of lags 0 to `lags`."""
    random = np.random.default_rng(seed)
    others = [_elsewhere(pairs.inputs, lags, random) for _ in range(NULLS)]
    table = np.array([[_at(pairs, past, lag) for lag in range(lags + 1)] for past in (pairs.inputs, *others)])
    data, null = table[0], table[1:]
    mean, spread = null.mean(0), null.std(0, ddof=1)
    count = max(pairs.count, 2)
    scale = np.maximum(spread, math.log(count) / count)  # what one pair changes: in sparse tables nulls are all alike
    furthest = float(((null - mean) / scale).max(initial=0.0))
    certain = (data - mean) / scale > max(furthest, 4.0)
    left = np.full(lags + 1, _left(pairs, newest=True))
    left[0] = _left(pairs, newest=False)
    found = np.maximum(data - mean, 0.0)
    share = np.divide(found, left, out=np.zeros_like(found), where=left > 0)
    return Information(found, spread, certain, share)


def _numbered(table: Ids) -> Ids:
    """The same ids, numbered from 0 in their order; −1 stays."""
    known = table >= 0
    out = np.full_like(table, -1)
    out[known] = np.unique(table[known], return_inverse=True)[1]
    return out


def _elsewhere(inputs: Ids, lags: int, random: np.random.Generator) -> Ids:
    """The inputs of other sequences in the place of each; of few sequences their own, moved around."""
    rows, width = inputs.shape
    if rows >= FEWEST_SEQUENCES:
        order = random.permutation(rows)
        moved: Ids = np.empty_like(inputs)
        moved[order] = inputs[np.roll(order, 1)]  # along one cycle: none keeps its own
        return moved
    least = min(lags + 1, max(1, width // 2))
    by = int(random.integers(least, max(least + 1, width - least)))
    return np.roll(inputs, by, axis=1)


def _at(pairs: Pairs, past: Ids, lag: int) -> float:
    """I(y_t; x_{t−lag} | x_t), x_{t−lag} read from `past`; of lag 0 I(y_t; x_t)."""
    width = pairs.inputs.shape[1]
    before, now, target = past[:, : width - lag], pairs.inputs[:, lag:], pairs.targets[:, lag:]
    there = (before >= 0) & (now >= 0) & (target >= 0)
    x, z, y = before[there], now[there], target[there]
    if lag == 0:
        z = np.zeros_like(z)
    return _entropy(x, z) + _entropy(y, z) - _entropy(x, y, z) - _entropy(z)


def _left(pairs: Pairs, *, newest: bool) -> float:
    """H(y | x), or H(y)."""
    there = (pairs.inputs >= 0) & (pairs.targets >= 0)
    x, y = pairs.inputs[there], pairs.targets[there]
    return _entropy(x, y) - _entropy(x) if newest else _entropy(y)


def _entropy(*columns: Ids) -> float:
    """Of the frequencies with which the rows of some columns occur, in nats."""
    if not len(columns[0]):
        return 0.0
    code, cells = np.zeros_like(columns[0]), 1
    for one in columns:
        size = int(one.max()) + 1
        code, cells = code * size + one, cells * size
    counts = np.bincount(code) if cells <= TABLE else np.unique(code, return_counts=True)[1]
    p = counts[counts > 0] / len(code)
    return float(-(p * np.log(p)).sum())
