"""A plane of points: eigenvalues beside the unit circle, or a trajectory with its fixed points."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtGui import QBrush

from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.plots.axes import ValueAxis, style_axis
from inspector.gui.widgets.plots.bare_plot import BarePlot
from inspector.gui.widgets.plots.title import fit_title, title_from_left
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme, colour_table
from inspector.gui.widgets.type_scale import title_points

Array = npt.NDArray[Any]
MOST_DOTS = 2000
NEAR = 1.5
"""Widths of the trajectory within which marks are in view: farther ones would compress it."""
WAY_COLOURS = "CET-I1"
"""Equally bright colours, so that first and last steps are visible on light and dark backgrounds alike."""
SIZE = {"dot": 7, "path": 5, "mark": 13, "cursor": 15}


@cache
def _brushes(colours: str, *, marked: bool) -> list[QBrush]:
    """One brush for each colour of a way: pyqtgraph draws a symbol anew for each brush, be its colour as it may."""
    return [pg.mkBrush(*(int(c) >> shift & 255 for shift in (16, 8, 0))) for c in colour_table(colours, marked)]


class Plane(BarePlot):
    """Points (x, y) on linear axes. With `circle`, the unit circle is drawn and both axes have the same scale."""

    steps = None

    def __init__(self, theme: Theme, *, circle: bool = False, labels: tuple[str, str] = ("", "")) -> None:
        axes = {side: ValueAxis(side) for side in ("left", "bottom")}
        super().__init__(viewBox=View(both=True), axisItems=axes)
        self.theme, self.labels = theme, labels
        title_from_left(self)
        self.hideButtons()
        self.getAxis("left").setWidth(58)
        self.has_circle = circle
        self.setAspectLocked(circle)
        angle = np.linspace(0, 2 * np.pi, 361)
        self.circle = pg.PlotCurveItem(np.cos(angle), np.sin(angle), antialias=True)
        self.zero = (pg.InfiniteLine(0, angle=0), pg.InfiniteLine(0, angle=90))
        self.path = pg.PlotCurveItem(antialias=True, connect="finite")
        self.dots, self.stable, self.unstable, self.here = (pg.ScatterPlotItem(antialias=True) for _ in range(4))
        if circle:
            for item in (*self.zero, self.circle):
                self.addItem(item, ignoreBounds=True)
        for item in (self.path, self.dots, self.unstable, self.stable, self.here):
            self.addItem(item, ignoreBounds=True)
        self._way: tuple[Array, Array, Array] = (np.zeros(0, int), np.zeros(0), np.zeros(0))
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.set_labels(*self.labels)
        self.vb.setBackgroundColor(theme.base)
        for line in self.zero:
            line.setPen(pg.mkPen(theme.grid))
        self.circle.setPen(pg.mkPen(theme.muted, width=1.2, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.path.setPen(pg.mkPen(theme.muted + "70", width=0.8))
        self.stable.setBrush(pg.mkBrush(theme.series[3]))
        self.unstable.setBrush(pg.mkBrush(theme.base))
        for marks in (self.stable, self.unstable):
            marks.setPen(pg.mkPen(theme.series[3], width=2))
        self.here.setPen(pg.mkPen(theme.cursor, width=2))
        self.here.setBrush(None)

    def set_labels(self, x: str, y: str) -> None:
        """Other axis labels."""
        self.labels = (x, y)
        style_axis(self.getAxis("bottom"), self.theme, x)
        style_axis(self.getAxis("left"), self.theme, y)

    def set_title(self, text: str) -> None:
        """A title that is never read as HTML, cut where the plane ends."""
        self.titleLabel.lines = (text,)
        self.setTitle(self.titleLabel.elided(), color=self.theme.text, size=f"{title_points():g}pt")
        self.titleLabel.setToolTip(tooltip(text))
        fit_title(self)

    def resizeEvent(self, event: Any) -> None:
        """A title has more lines where there is room for them."""
        super().resizeEvent(event)
        if self.titleLabel.lines:
            fit_title(self)

    def show_dots(self, x: Array, y: Array) -> None:
        """Points in one colour, those that are finite."""
        fine = np.isfinite(x) & np.isfinite(y)
        self._way = (np.flatnonzero(fine), x[fine], y[fine])
        brush = pg.mkBrush(self.theme.series[0] + "b0")
        self.dots.setData(x=x[fine], y=y[fine], size=SIZE["dot"], pen=None, brush=brush)
        self._fit(x[fine], y[fine])

    def show_way(self, x: Array, y: Array, levels: Levels) -> None:
        """Points that follow each other, coloured by their numbers; thinned to what can be distinguished."""
        stride = max(1, -(-len(x) // MOST_DOTS))
        index = np.arange(0, len(x), stride)
        self.path.setData(x[index], y[index])
        index = index[np.isfinite(x[index]) & np.isfinite(y[index])]
        known = _brushes(levels.colours or levels.scale, marked=levels.marked)
        brushes = [known[at] for at in levels.index(index.astype(np.float64))]
        self.dots.setData(x=x[index], y=y[index], size=SIZE["path"], pen=None, brush=brushes)
        self._way = (index, x[index], y[index])
        self._fit(x[index], y[index])

    def show_marks(self, x: Array, y: Array, filled: npt.NDArray[np.bool_]) -> int:
        """Diamonds, filled (stable) or open (unstable), beside the trajectory; returns how many lie outside the view.

        Those that are not finite are left out: Qt crashes where it has to draw one.
        """
        fine = np.isfinite(x) & np.isfinite(y)
        x, y, filled = x[fine], y[fine], filled[fine]
        _, xs, ys = self._way
        near = np.ones(len(x), dtype=bool)
        for marks, way in ((x, xs), (y, ys)):
            if len(way):
                reach = NEAR * (way.max() - way.min() or 1.0)
                near &= (marks >= way.min() - reach) & (marks <= way.max() + reach)
        for marks, which in ((self.stable, filled), (self.unstable, ~filled)):
            marks.setData(x=x[which], y=y[which], size=SIZE["mark"], symbol="d")
        self._fit(np.concatenate((xs, x[near])), np.concatenate((ys, y[near])))
        return int((~near).sum())

    def show_here(self, x: float, y: float) -> None:
        """A ring where the cursor is; none where that is not finite."""
        fine = bool(np.isfinite(x) and np.isfinite(y))
        self.here.setData(x=[x] if fine else [], y=[y] if fine else [], size=SIZE["cursor"], symbol="o")

    def nearest(self, x: float, y: float) -> int | None:
        """The number of the point, of the trajectory or of the dots, that is nearest on the screen."""
        index, xs, ys = self._way
        if not len(index):
            return None
        width, height = self.vb.viewPixelSize()
        return int(index[np.argmin(((xs - x) / width) ** 2 + ((ys - y) / height) ** 2)])

    def _fit(self, x: Array, y: Array) -> None:
        """All points in view; around the unit circle the same to all sides."""
        if self.has_circle:
            reach = 1.08 * max(1.0, float(np.abs(np.concatenate((x, y, [0.0]))).max()))
            self.vb.setRange(xRange=(-reach, reach), yRange=(-reach, reach), padding=0)
        elif len(x):
            sides = [(float(v.min()), float(v.max())) for v in (x, y)]
            margins = [0.06 * (high - low) or 0.5 for low, high in sides]
            (left, right), (bottom, top) = [(s[0] - m, s[1] + m) for s, m in zip(sides, margins, strict=True)]
            self.vb.setRange(xRange=(left, right), yRange=(bottom, top), padding=0)
