"""The plot of a map of attention: both axes are zoomed and dragged, tokens on both, a path through the map."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF

from inspector.gui.widgets.images.cell_map import CellMap
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.axes import StepAxis, style_axis
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.plots.view import Range
from inspector.gui.widgets.theme import Theme

BEYOND = 60
"""Pixels by which a text may pass the end of its axis before it is turned."""
LABEL, LETTER = 26.0, 7.0
"""Pixels of the label of an axis and the space around it, and of a letter that is written downwards."""
LOWER = 36.0
"""Pixels of the lower axis with one line of names or numbers, and its label."""
FEW = 30
"""Queries that have room for a line each, in a map that is high enough to be read."""
CLOSEST = 3
"""Cells in view at the strongest zoom."""


class MapPlot(StepPlot):
    """Keys across, queries down; the cursor is a line along each axis."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, theme, label="query", bottom="key")
        self.query_axis = StepAxis("left")
        self.setAxisItems({"left": self.query_axis})
        self.vb.both, self.vb.led = True, [True, True]
        self.vb.resetting.connect(self.show_whole)
        self.invertY(True)
        self.map = CellMap()
        self.addItem(self.map)
        self.level_line = pg.InfiniteLine(angle=0, movable=False)
        self.level_line.hide()
        self.addItem(self.level_line, ignoreBounds=True)
        self.path = pg.PlotCurveItem(connect="finite", antialias=True)
        self.path.setZValue(40)
        self.addItem(self.path, ignoreBounds=True)
        self.size_of = (1, 1)
        """(columns, rows)"""
        self.whole = True
        """Whether the whole map is in view, as long as nobody zooms."""
        self.wanted: tuple[Range, Range] | None = None
        """(keys, queries) that the user has zoomed to, also while the map of a shorter run has none of them."""
        self._fitting = False
        self.step_axis.turns = True
        self.step_axis.thins = self.query_axis.thins = True
        self.vb.sigRangeChanged.connect(self._ranged)
        self.label("query", "key")
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        if hasattr(self, "path"):
            self.map.theme = theme
            self.path.setPen(pg.mkPen(theme.series[5], width=1.6))
            self.path.setShadowPen(pg.mkPen(theme.window, width=4.0))  # light and dark cells both lie below it
            self.label(*self._words)

    def label(self, queries: str, keys: str) -> None:
        """What the axes count."""
        self._words = (queries, keys)
        style_axis(self.query_axis, self.theme, queries)
        self.label_bottom(keys)

    # -- the range in view

    def fit(self, columns: int, rows: int, *, anew: bool = False) -> None:
        """A map of another size: its limits, and what the user has zoomed to, as far as it is there; the whole of it
        where that was in view, or `anew`."""
        resized = (columns, rows) != self.size_of
        if resized:
            self.size_of = (columns, rows)
            across, down = columns / 2, rows / 2  # it may be dragged until half of the view is empty
            fitting, self._fitting = self._fitting, True  # other limits may move the view: nobody has zoomed
            self.vb.setLimits(
                xMin=-0.5 - across, xMax=columns - 0.5 + across, yMin=-0.5 - down, yMax=rows - 0.5 + down,
                minXRange=min(CLOSEST, columns), minYRange=min(CLOSEST, rows),
            )  # fmt: skip
            self._fitting = fitting
        if anew or self.wanted is None:
            self.show_whole()
        elif resized:
            self._see(*self.wanted)

    def show_whole(self) -> None:
        """The whole map."""
        self.wanted = None
        self._see_whole()

    def zoom_to(self, keys: Range, queries: Range) -> None:
        """What the user had zoomed to, as far as it is there."""
        self.wanted = keys, queries
        self._see(keys, queries)

    def _see_whole(self) -> None:
        columns, rows = self.size_of
        self._set((-0.5, columns - 0.5), (-0.5, rows - 0.5), whole=True)

    def _see(self, keys: Range, queries: Range) -> None:
        """The part of the map that is nearest to a range; the whole where nothing of the range is in the map."""
        columns, rows = self.size_of
        across, down = moved_inside(keys, columns), moved_inside(queries, rows)
        if across is None or down is None:
            self._see_whole()
        else:
            self._set(across, down, whole=False)

    def _set(self, keys: Range, queries: Range, *, whole: bool) -> None:
        self._fitting = True
        self.vb.setRange(xRange=keys, yRange=queries, padding=0)
        self._fitting, self.whole = False, whole

    def _ranged(self, *_: object) -> None:
        if not self._fitting:
            (left, right), (low, high) = self.vb.viewRange()
            self.whole, self.wanted = False, ((left, right), (low, high))

    # -- marks

    def show_fixed(self, fixed: bool) -> None:
        """Both lines of a cursor that stays where it is are wider."""
        super().show_fixed(fixed)
        if hasattr(self, "level_line"):
            self.level_line.setPen(self._line.pen)

    def show_row(self, row: int | None) -> None:
        """Mark a query, or none."""
        if row is None:
            self.level_line.hide()
        else:
            self.level_line.setPos(row)
            self.level_line.show()

    def show_path(self, path: npt.NDArray[np.int64] | None) -> None:
        """The key of every query, as a line; −1 is a gap. None: no path."""
        if path is None:
            self.path.setData([], [])
            return
        keys = np.where(path < 0, np.nan, path).astype(np.float64)
        self.path.setData(keys, np.arange(len(path), dtype=np.float64))

    # -- tokens

    def name(self, queries: tuple[str, ...], keys: tuple[str, ...]) -> float:
        """Tokens on both axes; returns the width that the axis of the queries needs."""
        self.query_axis.set_names(queries)
        self.step_axis.set_names(keys)
        longest = longest_name(queries, self.query_axis.longest)
        if len(queries) > FEW:  # where not all of them have room, each is written with its number
            longest += 1 + len(str(len(queries) - 1))
        return max(58.0, LABEL + LETTER * longest)

    def needed_height(self, width: float) -> float:
        """The height of the lower axis where the map is so wide: names that do not fit are written downwards."""
        axis = self.step_axis
        turned = axis.written(0, len(axis.names) - 1, width) == "turned"
        # pyqtgraph leaves out a text that passes the axis' end before it is turned; the first and the last would
        axis.setStyle(hideOverlappingLabels=BEYOND if turned else True)
        return LABEL + LETTER * longest_name(tuple(axis.names), axis.longest) if turned else LOWER


def moved_inside(wanted: Range, count: int) -> Range | None:
    """A range of the same width that lies within the edges of so many cells, or all of them where it is wider; None
    where none of them is in the range."""
    low, high = wanted
    if high <= -0.5 or low >= count - 0.5:
        return None
    width = min(high - low, float(count))
    first = min(max(-0.5, low), count - 0.5 - width)
    return first, first + width


class DoubleClicks:
    """Calls `then(item)` for a double click on a plot of a figure."""

    def __init__(self, figure: Any, at: Callable[[Any, QPointF], Any], then: Callable[[Any], None]) -> None:
        self._figure, self._at, self._then = figure, at, then
        figure.scene().sigMouseClicked.connect(self._clicked)

    def _clicked(self, event: Any) -> None:
        if event.double():
            self._then(self._at(self._figure, event.scenePos()))


@lru_cache(maxsize=16)
def longest_name(names: tuple[str, ...], most: int) -> int:
    """Characters of the longest name, as it is shown, `most` at most."""
    return max((min(len(token(name)), most) for name in names), default=0)
