"""The mean of a long curve and its extremes, where more than two of its steps share a pixel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.capture import Capture
from inspector.gui.widgets.charts.bands import bands
from inspector.gui.widgets.plots.stepplot import StepPlot

Array = npt.NDArray[Any]
BELOW = -0.5
"""Where extremes lie, so that no line is hidden by those of another."""


class BandOfCurve:
    """Thin lines of the extremes of one curve, below all means."""

    def __init__(self, plot: StepPlot, colour: str) -> None:
        self._plot = plot
        self.edges = pg.PlotCurveItem(connect="finite"), pg.PlotCurveItem(connect="finite")
        self.extremes: tuple[Array, ...] = ()
        """(least, largest) as they are drawn; none where every step is drawn."""
        for edge in self.edges:
            edge.setZValue(BELOW)
            plot.addItem(edge)
        self.set_colour(colour)

    def set_colour(self, colour: str) -> None:
        """That of the curve, pale."""
        for edge in self.edges:
            edge.setPen(pg.mkPen(colour + "70", width=0.6))

    def show(
        self, capture: Capture, name: str, frame: int, bounds: tuple[float, float], cells: int,
        scaled: Callable[[Array], Array],
    ) -> tuple[Array, Array]:  # fmt: skip
        """Draw the extremes of the steps in view, as `scaled` places numbers on the axis: (x, mean) of the curve. A
        mean is of numbers, also where the axis is logarithmic."""
        steps = capture.extent(name, frame)[0]
        first = max(0, int(bounds[0]))
        stop = max(first, min(steps, int(bounds[1]) + 2))
        values = np.asarray(capture.block(name, frame, (slice(first, stop),)))
        x, least, mean, largest = bands(values, first, cells)
        self.extremes = scaled(least), scaled(largest)
        for edge, extreme in zip(self.edges, self.extremes, strict=True):
            edge.setData(x, extreme)
        return x, scaled(mean)

    def hide(self) -> None:
        """Every step is drawn again."""
        self.extremes = ()
        for edge in self.edges:
            edge.setData([], [])

    def remove(self) -> None:
        """Take the lines out of the plot."""
        for edge in self.edges:
            self._plot.removeItem(edge)
