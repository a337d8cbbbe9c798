"""Plots of series one above the other, over one horizontal axis: zooming one zooms all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inspector.gui.panel.figure import Figure
from inspector.gui.widgets.series import Floats
from inspector.gui.widgets.series_plot import Series, SeriesPlot
from inspector.gui.widgets.theme import Theme

HEIGHT = 130
"""Pixels for each plot."""
UNLIMITED = 16_000


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

    def draw(self, plots: Sequence[Plotted], word: str, *, axis: str = "auto", smoothing: int = 0) -> None:
        """Draw these; `word` is below the last one; `axis` and `smoothing` as in SeriesPlot.show."""
        self.count = len(plots)
        while len(self.made) < self.count:
            self._make()
        every = [one.x for plot in plots for one in plot.series]
        whole = all(_counted(x) for x in every)
        for row, made in enumerate(self.made):
            made.bottom.whole = whole
            made.plot.setVisible(row < self.count)
            made.plot.setMaximumHeight(UNLIMITED if row < self.count else 0)
            made.plot.label_bottom(word if row == self.count - 1 else "")
        low, high = self.zoomed or _around(every)
        self._ranging = True
        for made, plot in zip(self.shown, plots, strict=True):
            made.plot.vb.setXRange(low, high, padding=0)
            made.show(plot.title, plot.unit, plot.series, axis=axis, smoothing=smoothing)
        self._ranging = False

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
        made.plot.vb.sigXRangeChanged.connect(self._zoom)
        self.figure.addItem(made.plot, row=self.first_row + len(self.made), col=0)
        self.made.append(made)

    def _zoom(self, box: Any, bounds: tuple[float, float]) -> None:
        """One plot was zoomed: all show the same range, with as much detail as it has."""
        if self._ranging:
            return
        self._ranging = True
        self.zoomed = (float(bounds[0]), float(bounds[1]))
        for made in self.shown:
            if made.plot.vb is not box:
                made.plot.vb.setXRange(*bounds, padding=0)
            made.redraw()
        self._ranging = False


def _around(every: Sequence[Floats]) -> tuple[float, float]:
    """A range with all places."""
    finite = [x[np.isfinite(x)] for x in every]
    filled = [x for x in finite if len(x)]
    low, high = (min(x.min() for x in filled), max(x.max() for x in filled)) if filled else (0.0, 1.0)
    room = 0.01 * (high - low) if high > low else 0.5
    return float(low - room), float(high + room)


def _counted(x: Floats) -> bool:
    """Whether places along an axis are whole numbers, as iterations are; judged by the first and last ones."""
    ends = np.concatenate((x[:50], x[-50:]))
    ends = ends[np.isfinite(ends)]
    return bool((ends == np.rint(ends)).all())
