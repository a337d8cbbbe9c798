"""Plots of series one above the other, over one horizontal axis: zooming one zooms all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inspector.gui.panel.figure import Figure
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series import Floats
from inspector.gui.widgets.charts.series_plot import Series, SeriesPlot
from inspector.gui.widgets.theme import Theme

HEIGHT = 130
"""Pixels for each plot."""
UNLIMITED = 16_000
ROOM, GROWING_ROOM = 0.01, 0.03
"""Part of a range that is left free at its end."""


@dataclass(frozen=True, slots=True)
class Plotted:
    """One plot: its title, the unit of its vertical axis, its series."""

    title: str
    unit: str
    series: tuple[Series, ...]


class PlotColumn:
    """Plots are made as they are needed, and hidden where fewer are; see SeriesPlot."""

    def __init__(self, figure: Figure, theme: Theme, first_row: int = 0) -> None:
        self.figure, self.theme, self.first_row = figure, theme, first_row
        self.made: list[SeriesPlot] = []
        self.count = 0
        self.zoomed: tuple[float, float] | None = None
        """The range that the user has zoomed to; None for everything."""
        self._ranging = False
        self._whole: tuple[float, float] | None = None

    @property
    def shown(self) -> list[SeriesPlot]:
        """Those that are visible."""
        return self.made[: self.count]

    @property
    def height(self) -> int:
        """Pixels that they need."""
        return HEIGHT * self.count

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for made in self.made:
            made.set_theme(theme)

    def draw(
        self, plots: Sequence[Plotted], word: str, *, axis: str = "auto", smoothing: int = 0, growing: bool = False
    ) -> None:
        """Draw these; `word` is below the last one; `axis` and `smoothing` as in SeriesPlot.show. With `growing`
        there is some room for more, so that axes are not drawn anew for every point."""
        self.count = len(plots)
        while len(self.made) < self.count:
            self._make()
        every = [one.points for plot in plots for one in plot.series]
        whole = all(_counted(points.x) for points in every)
        for row, made in enumerate(self.made):
            made.bottom.whole = whole
            made.plot.setVisible(row < self.count)
            made.plot.setMaximumHeight(UNLIMITED if row < self.count else 0)
            made.plot.label_bottom(word if row == self.count - 1 else "")
        self._whole = _around(every, self._whole if growing else None, GROWING_ROOM if growing else ROOM)
        low, high = self._seen(self._whole)
        self._ranging = True
        for made, plot in zip(self.shown, plots, strict=True):
            made.plot.vb.setXRange(low, high, padding=0)
            made.show(plot.title, plot.unit, plot.series, axis=axis, smoothing=smoothing)
        self._ranging = False

    def _seen(self, whole: tuple[float, float]) -> tuple[float, float]:
        """What the user has zoomed to; all until something of it is there: it may be kept from a longer run."""
        kept = self.zoomed
        return kept if kept is not None and kept[0] < whole[1] and whole[0] < kept[1] else whole

    def show_whole(self) -> None:
        """Everything along the axis, which all plots share."""
        self.zoomed = None
        if self._whole is not None:
            self._range(*self._whole)

    def mark(self, place: float | None) -> None:
        """A dashed line in every plot, or none."""
        for made in self.shown:
            made.mark.setVisible(place is not None)
            made.mark.setPos(place if place is not None else 0)

    def show_cursor(self, place: float | None) -> None:
        """The cursor in every plot."""
        for made in self.shown:
            made.plot.show_cursor(place)

    def _make(self) -> None:
        made = SeriesPlot(self.theme)
        made.set_theme(self.theme)
        made.plot.vb.led[0] = True
        made.plot.vb.resetting.connect(self.show_whole)
        made.plot.vb.sigXRangeChanged.connect(self._zoom)
        self.figure.addItem(made.plot, row=self.first_row + len(self.made), col=0)
        self.made.append(made)

    def _zoom(self, box: Any, bounds: tuple[float, float]) -> None:
        """One plot was zoomed: all show the same range, with as much detail as it has."""
        if self._ranging:
            return
        self.zoomed = (float(bounds[0]), float(bounds[1]))
        self._range(*self.zoomed)

    def _range(self, low: float, high: float) -> None:
        self._ranging = True
        for made in self.shown:
            if made.plot.vb.viewRange()[0] != [low, high]:
                made.plot.vb.setXRange(low, high, padding=0)
            made.redraw()
        self._ranging = False


def _around(every: Sequence[LongSeries], before: tuple[float, float] | None, room: float) -> tuple[float, float]:
    """A range with all places: the one before where it still fits closely, else one with so much room."""
    ends = [ends for points in every if (ends := points.ends) is not None]
    low, high = (min(one[0] for one in ends), max(one[1] for one in ends)) if ends else (0.0, 1.0)
    inside = before is not None and before[0] <= low and high <= before[1]
    if before is not None and inside and high - low >= (1 - 2.5 * room) * (before[1] - before[0]):
        return before
    left = 0.01 * (high - low) if high > low else 0.5
    return low - left, high + (room * (high - low) if high > low else 0.5)


def _counted(x: Floats) -> bool:
    """Whether places along an axis are whole numbers, as iterations are; judged by the first and last ones."""
    ends = np.concatenate((x[:50], x[-50:]))
    ends = ends[np.isfinite(ends)]
    return bool((ends == np.rint(ends)).all())
