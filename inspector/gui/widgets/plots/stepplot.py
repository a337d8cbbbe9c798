"""A plot whose horizontal axis is the sequence: linked to all others, with the shared cursor drawn into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.gaps import Gaps
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.bare_plot import BarePlot
from inspector.gui.widgets.plots.gap_bands import GapBands
from inspector.gui.widgets.plots.match_bands import MatchBands
from inspector.gui.widgets.plots.pin_lines import PinLines
from inspector.gui.widgets.plots.title import fit_title, title_from_left
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.type_scale import title_points
from inspector.records import STEP_DOMAIN

Array = npt.NDArray[Any]
POINTS = 2400
WIDE, SMOOTH, CALM = 150, 1000, 10.0
"""Points up to which every line has the requested width, up to which a dense one is smoothed; the `travel` below which
a line is not dense."""


class StepPlot(BarePlot):
    """Steps along x. `steps` is the shared range; None for a plot of its own range (lags, for example).

    With `log`, x are log10 of the numbers on the axis.
    """

    def __init__(
        self, steps: StepRange | None, theme: Theme, *, label: str = "", bottom: str = "step", log: bool = False
    ) -> None:
        self.step_axis = StepAxis("bottom")
        self._bottom = LogAxis("bottom") if log else self.step_axis
        axes = {"bottom": self._bottom, "left": ValueAxis("left")}
        super().__init__(viewBox=View(), axisItems=axes)
        self.steps, self.theme = steps, theme
        title_from_left(self)
        self.hideButtons()
        self.vb.setDefaultPadding(0.0)
        self.getAxis("left").setWidth(58)
        self._line = pg.InfiniteLine(angle=90, movable=False)
        self._line.setZValue(50)
        self._line.hide()
        self.addItem(self._line, ignoreBounds=True)
        self._fixed = False
        self._pins = PinLines(self)
        self._matches = MatchBands(theme)
        self.addItem(self._matches, ignoreBounds=True)
        self._bands = GapBands(theme)
        self.addItem(self._bands, ignoreBounds=True)
        self._labels = (label, bottom)
        self._shared = steps is not None and bottom == STEP_DOMAIN
        """Whether the axis counts the shared steps, whose title depends on the axis."""
        self.set_theme(theme)
        if steps is not None:
            self.vb.setXRange(*steps.bounds, padding=0)
            self.vb.led[0] = True
            self.vb.resetting.connect(self._reset_steps)
            steps.changed.connect(self._follow)
            self.vb.sigXRangeChanged.connect(self._lead)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        style_axis(self.getAxis("left"), theme, self._labels[0])
        style_axis(self._bottom, theme, self._labels[1])
        self.vb.setBackgroundColor(theme.base)
        self.show_fixed(self._fixed)
        self._pins.set_theme(theme)
        self._bands.theme = self._matches.theme = theme

    def mark_gaps(self, gaps: Gaps) -> None:
        """Mark the steps of which something that is drawn here is not known."""
        self._bands.set_gaps(gaps)

    def label_left(self, text: str) -> None:
        """Another label of the vertical axis."""
        if text != self._labels[0]:
            self._labels = (text, self._labels[1])
            style_axis(self.getAxis("left"), self.theme, text)

    def fit_left(self, values: Array, *, centred: bool) -> None:
        """Fit the vertical axis to some values: with 0 in its middle, or as the plot does it by itself."""
        finite = values[np.isfinite(values)]
        reach = float(np.abs(finite).max()) if centred and len(finite) else 0.0
        if reach > 0:
            self.vb.setYRange(-1.06 * reach, 1.06 * reach, padding=0)
        else:
            self.vb.enableAutoRange(axis="y")

    def label_bottom(self, text: str) -> None:
        """Another label of the horizontal axis; none where it is empty."""
        if text != self._labels[1]:
            self._labels = (self._labels[0], text)
            self._bottom.setLabel("")
            style_axis(self._bottom, self.theme, text)

    def name_steps(self, word: str) -> None:
        """Set what the axis counts ("step", "answer step", "layer"), where it counts the steps that are shared."""
        if self._shared and self._labels[1] != word:
            self._labels = (self._labels[0], word)
            style_axis(self._bottom, self.theme, word)

    def set_title(self, text: str, second: str = "") -> None:
        """A title that is never read as HTML, with a second line where there is one; it does not widen the plot."""
        self.titleLabel.lines = tuple(line for line in (text, second) if line)
        self.setTitle(self.titleLabel.elided(), color=self.theme.text, size=f"{title_points():g}pt")
        self.titleLabel.setToolTip(tooltip(" ".join(self.titleLabel.lines)))
        fit_title(self)

    def resizeEvent(self, event: Any) -> None:
        """A title has more lines where there is room for them."""
        super().resizeEvent(event)
        if self.titleLabel.lines:
            fit_title(self)

    def show_cursor(self, step: float | None) -> None:
        """Draw the shared cursor at a step, or nowhere."""
        if step is None:
            self._line.hide()
        else:
            self._line.setPos(step)
            self._line.show()

    def show_fixed(self, fixed: bool) -> None:
        """Whether the cursor stays where it is: its line is wider then."""
        self._fixed = fixed
        self._line.setPen(pg.mkPen(self.theme.cursor, width=2.5 if fixed else 1))

    def show_pins(self, pins: Sequence[tuple[int, int]]) -> None:
        """Draw the pins, (step, number) each."""
        self._pins.show(pins)

    def number_pins_at_cells(self, numbers: frozenset[int]) -> None:
        """These pins have their number at a cell of the plot, and not at their line."""
        self._pins.leave_out(numbers)

    def show_matches(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Mark ranges of steps, (first, last) each."""
        self._matches.set_ranges(ranges)

    def _follow(self, low: float, high: float) -> None:
        if self.vb.viewRange()[0] != [low, high]:
            self.vb.setXRange(low, high, padding=0)

    def _lead(self, _box: object, bounds: Sequence[float]) -> None:
        assert self.steps is not None
        if tuple(bounds) != self.steps.bounds:
            self.steps.set(bounds[0], bounds[1])
            if tuple(bounds) != self.steps.bounds:
                self._follow(*self.steps.bounds)

    def _reset_steps(self) -> None:
        if self.steps is not None:
            self.steps.show_whole()

    def release(self) -> None:
        """Disconnect from the shared range before the plot is removed."""
        if self.steps is not None:
            self.steps.changed.disconnect(self._follow)
            self.steps = None


def decimated(low: Array, high: Array, first: float, width: float) -> tuple[Array, Array]:
    """A curve through minima and maxima of cells: (x, y), at most two points a cell; NaN stays a gap."""
    cells = len(low)
    x = first + (np.arange(cells) + 0.5) * width - 0.5
    if low is high or np.array_equal(low, high, equal_nan=True):
        return x, low
    return np.repeat(x, 2), np.column_stack((low, high)).reshape(-1)


def logarithm(values: Array) -> Array:
    """log10, NaN where there is none (zero, negative): gaps stay visible and are never filled."""
    with np.errstate(all="ignore"):
        safe: Array = np.where(values > 0, np.log10(np.where(values > 0, values, 1.0)), np.nan)
    safe[np.isinf(values) & (values > 0)] = np.nan
    return safe


def isolated(x: Array, y: Array) -> npt.NDArray[np.bool_]:
    """Which finite points are alone between gaps, so that no line reaches them; x may repeat within a cell."""
    finite = np.concatenate(([False], np.isfinite(y), [False]))
    edges = np.flatnonzero(np.diff(finite.astype(np.int8)))
    alone = np.zeros(len(y), dtype=bool)
    for first, stop in zip(edges[0::2], edges[1::2], strict=True):
        alone[first:stop] = x[first] == x[stop - 1]
    return alone


DOT = 7
"""Pixels across of a point that no line reaches."""


class Line(pg.PlotDataItem):  # type: ignore[misc]
    """A line that is painted within one display frame however many points it has.

    Qt strokes a long path that goes up and down, is smoothed and wider than a pixel, in a second; one of a pixel in
    milliseconds. Where points are closer than pixels, smoothing is invisible anyway.
    """

    def __init__(self, pen: QPen) -> None:
        self._asked, self._busy = pen, False
        self._alone: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        super().__init__(pen=pen, connect="finite", antialias=True)

    def setData(self, *data: Any, **looks: Any) -> None:
        """As PlotDataItem.setData(x, y, …)."""
        count = len(data[0]) if data else 0
        self._busy = count > WIDE and travel(np.asarray(data[1], dtype=np.float64)) > CALM
        self.opts["antialias"] = not self._busy or count <= SMOOTH
        self.opts["pen"] = self._fitting()
        self._alone = isolated(np.asarray(data[0]), np.asarray(data[1])) if count else np.zeros(0, np.bool_)
        # Of a path that is not smoothed Qt leaves out what is shorter than a pixel; lines by themselves it paints.
        self.curve.setSegmentedLineMode("auto" if self.opts["antialias"] else "on")
        super().setData(*data, **looks)

    def updateItems(self, styleUpdate: bool = True) -> None:
        """As PlotDataItem; a point that no line reaches, between gaps or the only one, is a dot."""
        super().updateItems(styleUpdate)
        x, y = self.getData()
        if x is not None and len(x) == len(self._alone) and self._alone.any():
            colour = pg.mkBrush(self._asked.color())
            self.scatter.setData(x=x[self._alone], y=y[self._alone], size=DOT, symbol="o", pen=None, brush=colour)
            self.scatter.show()

    def dataBounds(self, ax: int, frac: float = 1.0, orthoRange: Any = None) -> Any:
        """Those of the curve, which has all points, the dots as well."""
        return self.curve.dataBounds(ax, frac, orthoRange) if self.curve.isVisible() else (None, None)

    def setPen(self, *pen: Any, **looks: Any) -> None:
        """Another pen, which dense lines make narrower."""
        self._asked = pg.mkPen(*pen, **looks)
        super().setPen(self._fitting())

    def _fitting(self) -> QPen:
        if not self._busy or self._asked.widthF() <= 1:
            return self._asked
        narrow = QPen(self._asked)
        narrow.setWidthF(1.0)
        return narrow


def travel(y: Array) -> float:
    """How often a line goes up and down:
    the path length along y over the distance from its lowest to its highest point."""
    with np.errstate(all="ignore"):
        way, finite = np.abs(np.diff(y)), y[np.isfinite(y)]
        span = float(np.ptp(finite)) if len(finite) else 0.0
        return float(way[np.isfinite(way)].sum()) / span if span > 0 else 0.0


def curve(theme: Theme, number: int, *, width: float = 1.4, dashed: bool = False) -> pg.PlotDataItem:
    """An empty line in the theme's colour of that number; NaN is a gap."""
    pen = pg.mkPen(theme.series[number % len(theme.series)], width=width)
    if dashed:
        pen.setStyle(Qt.PenStyle.DashLine)
    return Line(pen)


__all__ = ["POINTS", "StepPlot", "curve", "decimated", "isolated", "logarithm", "title_from_left"]
