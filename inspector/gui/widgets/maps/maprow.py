"""One heatmap with its axes, its colour bar and its crosshair, as a row of a figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.images.heatmap import Changes, Heatmap
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.images.saturated_cells import SaturatedCells
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.widgets.plots.axes import ValueAxis
from inspector.gui.widgets.plots.square import SquarePlot
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]


class MapRow:
    """A map (column along x, row down y) in row `row` of a figure's layout; one that can be `square` in a layout of its
    own."""

    def __init__(
        self, layout: Any, row: int, steps: StepRange | None, theme: Theme, *, label: str, bottom: str = "step",
        square: bool = False,
    ) -> None:  # fmt: skip
        kind = SquarePlot if square else StepPlot
        self.plot = kind(steps, theme, label=label, bottom=bottom)
        self.plot.setAxisItems({"left": ValueAxis("left", whole=True)})
        self.plot.getAxis("left").setWidth(58)
        self.plot.invertY(True)
        self.map = Heatmap()
        self.plot.addItem(self.map)
        self.saturated: SaturatedCells | None = None
        """Dots on what is at its bound, made when they are first wanted."""
        self.level_line = pg.InfiniteLine(angle=0, movable=False)
        self.level_line.hide()
        self.plot.addItem(self.level_line, ignoreBounds=True)
        self.bar = ColourBar(theme)
        self.bar.lie_beside(self.plot)
        self.bar.lie_by_map(self.map)
        layout.addItem(self.plot, row=row, col=0)
        layout.addItem(self.bar, row=row, col=1)
        if isinstance(self.plot, SquarePlot):
            self.plot.lie_in(layout)
        self.shown_as: object = None
        """What the cells show where they stand for several steps, by whoever chooses it."""
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.plot.set_theme(theme)
        self.bar.theme = self.map.theme = theme
        self.level_line.setPen(pg.mkPen(theme.cursor, width=1))
        self.bar.update()

    def show_array(self, values: Array, levels: Levels, unit: str, *, revision: int = 0, gaps: Gaps = NONE) -> None:
        """Show an array (column, row) that is wholly in memory; −∞ is an empty cell where the levels are masked."""
        infinite = np.isposinf(values) if levels.masked else np.isinf(values)
        self.show(
            lambda cut, _cells: (values[cut[0] : cut[1]],) * 2, values.shape[0], values.shape[1],
            levels, unit, revision, nan=has_nan(values, gaps), infinite=bool(infinite.any()), gaps=gaps,
        )  # fmt: skip

    def show(
        self,
        overview: Callable[[tuple[int, int], int], tuple[Array, Array]],
        columns: int,
        rows: int,
        levels: Levels,
        unit: str,
        revision: int,
        *,
        nan: bool = False,
        infinite: bool = False,
        gaps: Gaps = NONE,
        changes: Changes | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """Show an array through its overview, its `gaps` covered; `changes`: see `Heatmap.set_source`; what is beyond
        `bounds` is marked as saturated."""
        self.map.set_source(overview, columns, rows, levels, revision, gaps, changes)
        self._mark_saturated(bounds)
        if self.saturated is not None and bounds is not None:
            self.saturated.set_source(overview, columns, rows, levels, revision, changes=changes)
        if isinstance(self.plot, SquarePlot):
            self.plot.set_shape(columns, rows)
        self.plot.vb.setYRange(-0.5, max(1, rows) - 0.5, padding=0)
        if self.plot.steps is None:
            self.plot.vb.setXRange(-0.5, max(1, columns) - 0.5, padding=0)
        self.bar.set_levels(levels, unit, nan=nan, infinite=infinite, gaps=gaps, saturated=bounds is not None)
        self.bar.count_from(overview, columns)

    def _mark_saturated(self, bounds: tuple[float, float] | None) -> None:
        """Make or hide the dots."""
        if self.saturated is None and bounds is not None:
            self.saturated = SaturatedCells()
            self.saturated.set_order(self.map.order)
            self.plot.addItem(self.saturated, ignoreBounds=True)
            self.level_line.setZValue(1)
        if self.saturated is not None:
            self.saturated.setVisible(bounds is not None)
            if bounds is not None and bounds != self.saturated.bounds:
                self.saturated.bounds = bounds
                self.saturated.forget()

    def forget(self) -> None:
        """Colour everything anew: the same array is to be shown in another way."""
        self.map.forget()
        if self.saturated is not None:
            self.saturated.forget()

    def set_order(self, order: npt.NDArray[np.intp] | None) -> None:
        """Draw row i as unit order[i], with the numbers of the units at the ticks; None: as they are."""
        for item in (self.map, *([self.saturated] if self.saturated is not None else [])):
            item.set_order(order)
        self.plot.getAxis("left").set_numbers(None if order is None else order.tolist())

    def show_row(self, row: int | None) -> None:
        """Mark a row, or none."""
        if row is None:
            self.level_line.hide()
        else:
            self.level_line.setPos(row)
            self.level_line.show()


def has_nan(values: Array, gaps: Gaps) -> bool:
    """Whether an array (column, row) has NaN outside of its gaps."""
    nan = np.isnan(values)
    for columns, rows in (*gaps.missing, *gaps.damaged):
        nan[slice(*columns), slice(*rows)] = False
    return bool(nan.any())
