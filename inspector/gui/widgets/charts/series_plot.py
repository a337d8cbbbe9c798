"""One plot of series over training: raw lines, pale where they are smoothed, and marks for what is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series import ABOVE, CELLS, Beyond, Floats, running_mean, span, thinned
from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme

SYMBOLS = {"NaN": "x", "+∞": "t1", "−∞": "t", "≤ 0": "t3"}
PALE = 0.3
WIDE = 20.0
"""A plot whose numbers are positive and span more than this factor has a logarithmic axis, unless told otherwise."""
BASELINE_WIDTH = 1.5
MARK_SIZE, LEAST_CELLS = 9, 400


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn as one line: its name in the legend ("" where it is alone), and its points."""

    name: str
    points: LongSeries
    colour: int = 0
    dashed: bool = False
    baseline: bool = False
    """Drawn in the colour of texts and thicker: what the others are seen against."""

    @property
    def x(self) -> Floats:
        """(n,) places."""
        return self.points.x

    @property
    def y(self) -> Floats:
        """(n,) values."""
        return self.points.y


CONSTANT = 1e-6
"""A curve that varies by less than this share of its size is drawn as constant: float32 rounds to 6e-8 of it.
Counter-example: the last digits of a time in seconds since 1970, whose curve is then a flat line."""


class SeriesPlot:
    """A plot, its legend, and the line at the frame that is shown; its lines are made once and used again.

    A plot that is removed and released while its legend is still in it crashes the process, so plots are hidden
    instead.
    """

    def __init__(self, theme: Theme) -> None:
        self.plot = StepPlot(None, theme, bottom="")
        before = self.plot.getAxis("bottom")
        self.bottom = self.plot._bottom = ValueAxis("bottom")
        self.plot.setAxisItems({"bottom": self.bottom})
        before.setParentItem(None)  # in no scene yet, it would stay in the corner of the plot
        self.mark = pg.InfiniteLine(angle=90)
        self.plot.addItem(self.mark, ignoreBounds=True)
        self.legend = Legend(self.plot, theme=theme)
        self.lines: list[pg.PlotDataItem] = []
        self.smooth: list[pg.PlotDataItem] = []
        self.marks = pg.ScatterPlotItem(pxMode=True, size=MARK_SIZE)
        self.series: tuple[Series, ...] = ()
        self.log = False
        self.smoothing = 0
        self.theme = theme
        self.beyond: list[Beyond] = []
        self._names: list[str] = []
        self._title: tuple[str, Theme] | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        self.legend.set_theme(theme)
        style_axis(self.plot.getAxis("bottom"), theme, self.plot._labels[1])
        style_axis(self.plot.getAxis("left"), theme, self.plot._labels[0])

    def show(self, title: str, unit: str, series: Sequence[Series], *, axis: str, smoothing: int) -> None:
        """Draw some series. `axis`: "log", "linear", or "auto" (by their numbers); `smoothing`: points of a mean."""
        self.series, self.smoothing = tuple(series), smoothing
        self.log = axis == "log" or (axis == "auto" and _is_wide([one.points.span for one in series]))
        self._set_axis("" if unit == "1" else unit)
        self._make(len(series))
        self.beyond = [one.points.beyond(log=self.log) for one in series]
        words = "; ".join(found.words for found in self.beyond if found.counts)
        self._entitle(f"{title} ({words})" if words and len(series) == 1 else title)
        self._name([f"{one.name} ({found.words})" if found.counts else one.name
                    for one, found in zip(series, self.beyond, strict=True)])  # fmt: skip
        self.redraw()

    def _entitle(self, title: str) -> None:
        if (title, self.theme) != self._title:
            self._title = (title, self.theme)
            self.plot.set_title(title)

    def _name(self, names: list[str]) -> None:
        if len(names) == 1 and not self.series[0].name:
            names = []
        if names != self._names or [line for line, _ in self.legend.entries] != self._shown_lines()[: len(names)]:
            self._names = names
            self.legend.clear()
            for n, (line, name) in enumerate(zip(self._shown_lines(), names, strict=False)):
                self.legend.addItem(line, name, *((self.lines[n],) if self.smoothing else ()))

    def _shown_lines(self) -> list[pg.PlotDataItem]:
        return (self.smooth if self.smoothing else self.lines)[: len(self.series)]

    def redraw(self) -> None:
        """Draw what is in the range of the plot, as fine as it can be seen."""
        low, high = self.plot.vb.viewRange()[0]
        cells = min(CELLS, max(LEAST_CELLS, round(self.plot.vb.width())))
        seen = []
        for n, one in enumerate(self.series):
            colour = pg.mkColor(self._colour_of(one))
            thick = BASELINE_WIDTH if one.baseline else 1.0
            style = Qt.PenStyle.DashLine if one.dashed else Qt.PenStyle.SolidLine
            x, y = one.points.seen(low, high)
            y = logarithm(y) if self.log else y
            if self.smoothing:
                mean = running_mean(*self._every(one, low, high), self.smoothing)
                self.smooth[n].setData(*thinned(*mean, cells))
                self.smooth[n].setPen(pg.mkPen(colour, width=1.6 * thick, style=style))
                colour = pg.mkColor(colour)
                colour.setAlphaF(PALE)
            self.lines[n].setPen(pg.mkPen(colour, width=1.4 * thick, style=style))
            points = thinned(x, y, cells)
            self.lines[n].setData(*points)
            seen.append(points[1])
        for n, lines in enumerate(zip(self.lines, self.smooth, strict=True)):
            lines[0].setVisible(n < len(self.series))
            lines[1].setVisible(n < len(self.series) and bool(self.smoothing))
        self._fit(*span(seen))
        self._mark_what_is_beyond()

    def _colour_of(self, one: Series) -> str:
        return self.theme.text if one.baseline else self.theme.series[one.colour % len(self.theme.series)]

    def _every(self, one: Series, low: float, high: float) -> tuple[Floats, Floats]:
        """All points of a range, for means; logarithms where the axis has them."""
        inside = (one.x >= low) & (one.x <= high)
        return one.x[inside], logarithm(one.y[inside]) if self.log else one.y[inside]

    def _fit(self, low: float, high: float) -> None:
        room = 0.06 * (high - low)
        if high - low <= CONSTANT * abs(high):  # a line in the middle, not its rounding over the whole height
            room = 0.5 if self.log else 0.1 * abs(high) or 1.0
        bottom, top = low - room, high + room
        if self.plot.vb.viewRange()[1] != [bottom, top]:
            self.plot.vb.setYRange(bottom, top, padding=0)
        seen = self.plot.vb.viewRange()[1]  # another one where the user has zoomed
        if list(self.plot.getAxis("left").range) != seen:  # a new axis is notified of changes only
            self.plot.getAxis("left").setRange(*seen)

    def _mark_what_is_beyond(self) -> None:
        """Marks at the edges, in the colours of their curves."""
        low, high = self.plot.vb.viewRange()[1]
        inside = 0.04 * (high - low)
        spots = []
        for one, found in zip(self.series, self.beyond, strict=True):
            colour = pg.mkColor(self._colour_of(one))
            for sort, places in found.places.items():
                y = high - inside if sort == ABOVE else low + inside
                pen = pg.mkPen(colour, width=1.5) if sort in ("NaN", "≤ 0") else None
                brush = None if sort == "≤ 0" else pg.mkBrush(colour)
                spots += [{"pos": (x, y), "symbol": SYMBOLS[sort], "pen": pen, "brush": brush} for x in places.tolist()]
        if spots or len(self.marks.data):
            self.marks.setData(spots)

    def _make(self, count: int) -> None:
        if len(self.lines) >= count and self.marks.scene() is not None:
            return
        if self.marks.scene() is not None:
            self.plot.removeItem(self.marks)  # on top of lines that are new
        while len(self.lines) < count:
            for items in (self.lines, self.smooth):
                items.append(curve(self.theme, 0))
                self.plot.addItem(items[-1])
        self.plot.addItem(self.marks, ignoreBounds=True)

    def _set_axis(self, unit: str) -> None:
        axis = self.plot.getAxis("left")
        if isinstance(axis, LogAxis) is not self.log:
            self.plot.setAxisItems({"left": LogAxis() if self.log else ValueAxis("left")})
            self.plot.getAxis("left").setWidth(58)
        self.plot.label_left(unit)
        style_axis(self.plot.getAxis("left"), self.theme, unit)
        self.mark.setPen(pg.mkPen(self.theme.muted, width=1, style=Qt.PenStyle.DashLine))


def _is_wide(spans: Sequence[tuple[float, float]]) -> bool:
    """Whether numbers are all positive and span more than a factor, so that a logarithmic axis shows more."""
    low, high = min(one[0] for one in spans), max(one[1] for one in spans)
    return 0 < low <= high and high / low > WIDE
