"""Where the numbers of a map lie, whatever their unit: the share of the cells' numbers in each of some bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import with_nan
from inspector.gui.widgets.numbers import short

Array = npt.NDArray[Any]
BINS = 48
TICKS = 5
SAMPLED = 1 << 20
"""Numbers that are counted at a time; of more only every n-th step is, evenly."""


def density_overview(
    capture: Any, name: str, frame: int, low: float, high: float
) -> Callable[[tuple[int, int], int], tuple[Array, Array]]:
    """(cell, bin) the share of the finite numbers of all units at the steps of a cell that lie in a bin from `low` to
    `high`, the largest numbers first; the first and last bins have those beyond too. NaN where no number is finite."""

    def look(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        first, stop = cut
        cells = max(1, min(cells, stop - first))
        found = np.zeros((cells, BINS), np.int64)
        units = capture.extent(name, frame)[1]
        every = max(1, (stop - first) * units // SAMPLED)
        every = min(every, max(1, (stop - first) // cells))  # a step of each cell at least
        room = max(every, SAMPLED // max(1, units) // every * every)
        for start in range(first, stop, room):
            rows = with_nan(capture.block(name, frame, (slice(start, min(stop, start + room)),)))[::every]
            steps = start + every * np.arange(len(rows))
            _count(found, rows, (steps - first) * cells // (stop - first), low, high)
        with np.errstate(all="ignore"):
            share = found / np.where(found.sum(1) > 0, found.sum(1), np.nan)[:, None]
        return share, share

    return look


def _count(found: npt.NDArray[np.int64], rows: Array, cell: Array, low: float, high: float) -> None:
    """Add the numbers of some steps (step, unit) to the counts of their cells."""
    finite = np.isfinite(rows)
    with np.errstate(all="ignore"):
        share = (high - rows.astype(np.float64)) / ((high - low) or 1.0)
    bins = np.clip(np.where(finite, share, 0.0) * BINS, 0, BINS - 1).astype(np.int64)
    at = (cell[:, None] * BINS + bins)[finite]
    found += np.bincount(at, minlength=found.size).reshape(found.shape)


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """(row, number) for the axis of the bins."""
    return [(row, short(high - (row + 0.5) / BINS * (high - low))) for row in np.linspace(-0.5, BINS - 0.5, TICKS)]
