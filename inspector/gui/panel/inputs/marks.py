"""Features that only mark steps: they are 0 and 1, and drawn as marks rather than as a curve that jumps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
MOST_SHARE = 0.5
"""A feature that is 1 more often is a signal, not a mark (bits of a parity task are both equally often)."""
LEAST_STEPS = 4
"""In fewer steps 0 and 1 say nothing."""
SIZE = 9
DRAWN = 2000
"""Marks in view beyond which only so many, evenly chosen, are drawn."""


def is_mark(values: Array) -> bool:
    """Whether a feature (steps,) marks steps: each number 0 or 1, some 1, and fewer than half of them."""
    finite = values[np.isfinite(values)]
    ones = int((finite == 1).sum())
    binary = len(finite) == len(values) and ones + int((finite == 0).sum()) == len(finite)
    return binary and len(values) >= LEAST_STEPS and 0 < ones < MOST_SHARE * len(values)


class MarkRow:
    """The marks of up to `most` features: a row of triangles for each at the bottom of a plot."""

    def __init__(self, plot: Any, theme: Theme, most: int) -> None:
        self.plot = plot
        self.rows = [pg.ScatterPlotItem(size=SIZE, symbol="t1", pen=None) for _ in range(most)]
        for n, row in enumerate(self.rows):
            row.setZValue(20)
            row.setOpacity(0.9)
            row.setBrush(pg.mkBrush(theme.series[n % len(theme.series)]))
            plot.addItem(row, ignoreBounds=True)

    def set_theme(self, theme: Theme, colours: list[int]) -> None:
        """Other colours: the number of each row's."""
        for row, number in zip(self.rows, [*colours, *range(len(self.rows))], strict=False):
            row.setBrush(pg.mkBrush(theme.series[number % len(theme.series)]))

    def show(self, marks: list[npt.NDArray[np.int64]], bounds: tuple[float, float], low: float, height: float) -> None:
        """The marked steps of each feature within `bounds`, one row above the other from `low` on."""
        for n, row in enumerate(self.rows):
            at = marks[n] if n < len(marks) else np.zeros(0, np.int64)
            seen = at[(at >= bounds[0]) & (at <= bounds[1])]
            seen = seen[:: max(1, -(-len(seen) // DRAWN))]
            row.setData(x=seen.astype(np.float64), y=np.full(len(seen), low + (n + 0.5) * height))
