"""Many sorted values at every step as a fan: outer and inner band, a few lines, and the line that matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.capture import Capture
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.gaps import NONE, gaps_of
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import line_of, spaced, stride_of
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
LINES = 5
DECADES = 8.0
"""Decades below the largest value that a logarithmic axis shows at most; smaller values lie below the edge. In float32,
in which most models compute, they are rounding anyway."""
COLOURS = (0, 2, 3)
"""Series colours of the lines that are named; 1 is that of the line beside them."""
WIDTHS = (1.8, 0.7, 1.1, 0.7, 1.1)


class Fan:
    """A (step, rank) channel, largest first. With `log` the axis is logarithmic and `level` its logarithm."""

    def __init__(self, steps: StepRange, theme: Theme, *, label: str, symbol: str, log: bool, level: float) -> None:
        self.plot = StepPlot(steps, theme, label=label)
        self.log, self.symbol, self.level = log, symbol, level
        if log:
            self.plot.setAxisItems({"left": LogAxis()})
            self.plot.getAxis("left").setWidth(58)
        self.edges = [pg.PlotDataItem(connect="finite") for _ in range(4)]
        self.bands = [
            pg.FillBetweenItem(self.edges[0], self.edges[3]),
            pg.FillBetweenItem(self.edges[1], self.edges[2]),
        ]
        self.lines = [curve(theme, 0) for _ in range(LINES)]
        self.other = curve(theme, 1)
        self.mark = pg.InfiniteLine(level, angle=0)
        for item in (*self.bands, *self.edges, self.other, *self.lines):
            self.plot.addItem(item, ignoreBounds=True)
        self.plot.addItem(self.mark, ignoreBounds=True)
        self.legend = Legend(self.plot)
        self._named: tuple[int, ...] = (0, LINES // 2, LINES - 1)
        """Which of the lines the legend names; each of these has a colour of its own."""
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        for band, strength in zip(self.bands, ("22", "38"), strict=True):
            band.setBrush(pg.mkBrush(theme.series[0] + strength))
        for edge in self.edges:
            edge.setPen(None)
        self._colour_lines()
        self.other.setPen(pg.mkPen(theme.series[1], width=1.4))
        self.mark.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)

    def _colour_lines(self) -> None:
        colours = dict(zip(self._named, COLOURS, strict=False))
        for at, (line, width) in enumerate(zip(self.lines, WIDTHS, strict=True)):
            colour = self.theme.series[colours.get(at, 0)]
            line.setPen(pg.mkPen(colour + ("ff" if at in colours else "90"), width=width))

    def show(
        self, capture: Capture, channel: Channel, frame: int, bounds: tuple[float, float], other: Channel | None = None
    ) -> bool:
        """Draw what is in view, and a (step,) channel beside it; returns whether some values lie below the edge.

        Where only every n-th step was computed, lines go from one of these to the next.
        """
        x, low, high = self._rows(capture, channel, frame, bounds)
        columns = low.shape[1]
        chosen = sorted({round(i * (columns - 1) / (LINES - 1)) for i in range(LINES)})
        middle = (low + high) / 2
        finite = np.concatenate((low[np.isfinite(low)], high[np.isfinite(high)]))
        found = line_of(capture, other.name, frame, bounds) if other is not None else (np.zeros(0), np.zeros(0))
        y = logarithm(found[1]) if self.log else found[1].astype(np.float64)
        finite = np.concatenate((finite, y[np.isfinite(y)], [self.level]))
        top = float(finite.max())
        bottom = max(float(finite.min()), top - DECADES) if self.log else float(finite.min())
        margin = 0.06 * (top - bottom) or 0.5
        self.plot.vb.setYRange(bottom - margin, top + margin, padding=0)
        floor = bottom - 2 * (top - bottom) - 1
        self._draw(x, middle, (low, high), chosen, floor)
        beside = NONE if other is None else gaps_of(capture, other.name, frame, y=None)
        own = gaps_of(capture, channel.name, frame, y=None)
        if stride_of(capture, channel.name, frame) > 1:  # the steps between were never meant to be there
            own = replace(own, missing=())
        self.plot.mark_gaps(own | beside)
        _set(self.other, found[0], y)
        self._name(channel, chosen, columns, other)
        return bool((low[~np.isnan(low)] < bottom).any())

    def _rows(
        self, capture: Capture, channel: Channel, frame: int, bounds: tuple[float, float]
    ) -> tuple[Array, Array, Array]:
        """(x, minima, maxima) of the cells in view, on the axis; −∞ for what is zero."""
        steps, columns = capture.extent(channel.name, frame)
        first, stop = max(0, int(bounds[0])), min(steps, int(bounds[1]) + 2)
        if stop <= first or not columns:
            return np.zeros(0), np.zeros((0, max(1, columns))), np.zeros((0, max(1, columns)))
        every = stride_of(capture, channel.name, frame)
        if every > 1:
            x, low, high = spaced(capture, channel.name, frame, (first, stop), every, POINTS // 4)
        else:
            low, high = capture.overview(channel.name, frame, region=(slice(first, stop),), size=(POINTS // 4, columns))
            width = max(1.0, (stop - first) / max(1, len(low)))
            x = first + (np.arange(len(low)) + 0.5) * width - 0.5
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = np.log10(low.astype(np.float64)), np.log10(high.astype(np.float64))
        return x, np.where(np.isposinf(low), np.nan, low), np.where(np.isposinf(high), np.nan, high)

    def _draw(self, x: Array, middle: Array, ends: tuple[Array, Array], chosen: list[int], floor: float) -> None:
        low, high = (np.maximum(rows, floor) for rows in ends)
        hole = np.isnan(low).any(axis=1) | np.isnan(high).any(axis=1)
        columns = middle.shape[1]
        quarter, rest = columns // 4, columns - 1 - columns // 4
        for edge, y in zip(self.edges, (high[:, 0], high[:, quarter], low[:, rest], low[:, -1]), strict=True):
            edge.setData(x, np.where(hole, np.nan, y))
        for number, line in enumerate(self.lines):
            if number >= len(chosen):
                line.setData([], [])
                continue
            y = np.where(middle[:, chosen[number]] < floor, np.nan, middle[:, chosen[number]])
            _set(line, x, y)

    def _name(self, channel: Channel, chosen: list[int], columns: int, other: Channel | None) -> None:
        self.legend.clear()
        axis = channel.dims[1]
        names = channel.labels.get(axis, tuple(str(i + 1) for i in range(columns)))
        self._named = tuple(sorted({0, len(chosen) // 2, len(chosen) - 1}))
        self._colour_lines()
        for at in self._named:
            if chosen[at] < len(names):
                self.legend.addItem(self.lines[at], f"{self.symbol}{subscript(names[chosen[at]])}")
        if other is not None:
            self.legend.addItem(self.other, other.title)


def _set(line: pg.PlotDataItem, x: Array, y: Array) -> None:
    """Show a curve; one point alone is a dot, and without finite values nothing is drawn."""
    if not np.isfinite(y).any():
        line.setData([], [])
    else:
        line.setData(x, y)


def subscript(text: str) -> str:
    """Digits as subscripts."""
    return text.translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
