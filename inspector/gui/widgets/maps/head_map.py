"""One map of attention with its colour bar and its profiles: weights of a query below it, of a key beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.images.cell_map import Look
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colourbar import ColourBar, bar_width
from inspector.gui.widgets.maps.map_plot import MapPlot
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.plots.axes import style_axis
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve, decimated
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
TITLE, PROFILE, BESIDE, SPACE = 24.0, 74.0, 86.0, 4.0
"""Pixels of height of a title and of a profile below, of width of one beside, and between two plots."""
NAME = 22
"""Characters of the name of a map that the line above keeps beside what is read."""
LEAST = 40.0
NO_NAMES = 10.0
"""Pixels left of a map whose queries are named by the one before it."""


class HeadMap(pg.GraphicsWidget):  # type: ignore[misc]
    """A map of queries and keys is a square where it has as many of one as of the other."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self.plot, self.bar = MapPlot(theme), ColourBar(theme)
        self.bar.lie_by_map(self.plot.map)
        self.below = StepPlot(None, theme, label="", bottom="")
        self.beside = StepPlot(None, theme, label="", bottom="")
        self.beside.invertY(True)
        self.below.vb.led[0] = self.beside.vb.led[1] = True
        self.below.vb.sigXRangeChanged.connect(self._lead)
        self.beside.vb.sigYRangeChanged.connect(self._lead)
        for profile in (self.below, self.beside):
            profile.vb.resetting.connect(self.plot.show_whole)
        self.of_query, self.of_key = curve(theme, 0), curve(theme, 1)
        self.below.addItem(self.of_query)
        self.beside.addItem(self.of_key)
        self.row_line = pg.InfiniteLine(angle=0, movable=False)
        self.beside.addItem(self.row_line, ignoreBounds=True)
        self.row_line.hide()
        for item in (self.plot, self.bar, self.below, self.beside):
            item.setParentItem(self)
        self.profiles = self.with_bar = self.with_names = self.square = True
        self.above = pg.GraphicsWidget(self)
        """Where the line above is."""
        self.title = self.heading = self.shorter = ""
        """Whose map it is; the line above it, and the same in fewer words."""
        self.reads_first = False
        """Whether what is read stands before the name in that line, and stays whole."""
        self.axis_width = 58.0
        self.right_end = 0.0
        """Where the last of the parts ends."""
        self.plot.vb.sigRangeChanged.connect(self._follow)
        self.set_theme(theme)

    @property
    def same_axes(self) -> bool:
        """Whether there are as many queries as keys, so that both axes are taken to count the same."""
        return bool(self.plot.size_of[0] == self.plot.size_of[1])

    def set_square(self, on: bool) -> None:
        """Equal sides where both axes count the same, or as much room as there is."""
        if on != self.square:
            self.square = on
            self.place()

    @property
    def left(self) -> float:
        """Pixels left of the map, of the axis of its queries."""
        return self.axis_width if self.with_names else NO_NAMES

    @property
    def around(self) -> float:
        """Pixels of width that are not the map's."""
        beside = (bar_width() if self.with_bar else 0.0) + (BESIDE if self.profiles else 0.0)
        return self.left + beside + 2

    def continues(self, other: HeadMap) -> bool:
        """Whether it has the queries of another map: beside that they need no names again."""
        return bool(
            self.plot.query_axis.names == other.plot.query_axis.names and self.plot.size_of == other.plot.size_of
        )

    @property
    def map(self) -> Any:
        """The image of the map."""
        return self.plot.map

    @property
    def level_line(self) -> Any:
        """The mark of the query."""
        return self.plot.level_line

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = self.bar.theme = theme
        for plot in (self.plot, self.below, self.beside):
            plot.set_theme(theme)
        self.row_line.setPen(self.level_line.pen)
        self.of_query.setPen(theme.series[0], width=1.4)
        self.of_key.setPen(theme.series[1], width=1.4)
        style_axis(self.beside.getAxis("left"), theme, "")
        self.bar.update()

    # -- contents

    def set_heading(self, text: str, shorter: str = "") -> None:
        """The line above, never read as HTML, cut where the page ends; a tooltip has all of it where the mouse is over
        the line (over the map it would cover that). `shorter`: the same in fewer words, where it does not fit."""
        if (text, shorter) != (self.heading, self.shorter):
            self.heading, self.shorter = text, shorter
            self.above.setToolTip(tooltip(text))
            self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The line above."""
        if not self.plot.isVisible():
            return
        left = self.left
        box = QRectF(left, 0, self.rect().width() - left, TITLE - 4)
        painter.setPen(QColor(self.theme.text))
        self.above.setGeometry(box)
        words = self.shortened(QFontMetricsF(painter.font()), box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, words)

    def shortened(self, metrics: QFontMetricsF, width: float) -> str:
        """The line above where there is little room: the names of heads side by side differ at their ends, so a name
        loses its middle, at most down to NAME characters; of what is read at the cursor, after three spaces, the
        end is cut, or all of it."""
        whole = clean(self.heading)
        if self.shorter and metrics.horizontalAdvance(whole) > width:
            whole = clean(self.shorter)
        name, apart, read = whole.partition("   ")
        if apart and metrics.horizontalAdvance(f"{name}{apart}") < width:
            room = max(width - metrics.horizontalAdvance(f"{apart}{read}"), NAME * metrics.averageCharWidth())
            if metrics.horizontalAdvance(whole) > width and not self.reads_first:
                name = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
            return metrics.elidedText(f"{name}{apart}{read}", Qt.TextElideMode.ElideRight, width)
        return metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, width)

    def show_map(
        self, look: Look, size: tuple[int, int], levels: Levels, unit: str, *, revision: Any,
        special: tuple[bool, bool] = (False, False), gaps: Gaps = NONE, anew: bool = False,
    ) -> None:  # fmt: skip
        """Show a map of (columns, rows); `special`: whether it has NaN, infinity; `anew`: it is another map, to be seen
        whole."""
        self.plot.map.set_source(look, size, levels, revision, gaps)
        self.bar.set_levels(levels, unit, nan=special[0], infinite=special[1], gaps=gaps)
        self.plot.fit(*size, anew=anew)

    def name(self, queries: tuple[str, ...], keys: tuple[str, ...]) -> None:
        """Tokens of both axes."""
        self.axis_width = self.plot.name(queries, keys)
        self.below.step_axis.set_names(keys)
        self.place()

    def show_profiles(self, of_query: Array | None, of_key: Array | None, titles: tuple[str, str] = ("", "")) -> None:
        """(key,) numbers below the map and (query,) numbers beside it; None: nothing. Masked ones (−∞) are gaps; of
        more than can be told apart the least and the largest of every few are drawn."""
        for line, values, across in ((self.of_query, of_query, True), (self.of_key, of_key, False)):
            numbers = np.zeros(0) if values is None else np.where(np.isinf(values), np.nan, values).astype(np.float64)
            at, numbers = thinned(numbers)
            line.setData(*((at, numbers) if across else (numbers, at)))
        self._scale(self.below, of_query, 1)
        self._scale(self.beside, of_key, 0)
        self.below.label_left(titles[0])
        self.beside.label_bottom(titles[1])

    @staticmethod
    def _scale(plot: StepPlot, values: Array | None, axis: int) -> None:
        finite = values[np.isfinite(values)] if values is not None else np.zeros(0)
        low, high = (min(0.0, float(finite.min())), float(finite.max())) if len(finite) else (0.0, 1.0)
        reach = (low, high + 0.05 * (high - low) if high > low else low + 1.0)
        plot.vb.setRange(**{("xRange", "yRange")[axis]: reach}, padding=0)

    def show_cursor(self, query: int | None, key: int | None) -> None:
        """Mark a query and a key in all three plots."""
        self.plot.show_cursor(key)
        self.plot.show_row(query)
        self.below.show_cursor(key)
        self.row_line.setPen(self.level_line.pen)
        if query is None:
            self.row_line.hide()
        else:
            self.row_line.setPos(query)
            self.row_line.show()

    # -- layout

    def _lead(self, view: Any, bounds: Any) -> None:
        """A profile was zoomed or dragged along the map: so is the map."""
        axis = 0 if view is self.below.vb else 1
        if view.by_user and list(bounds) != self.plot.vb.viewRange()[axis]:
            with self.plot.vb.moved_by_user((axis == 0, axis == 1)):
                self.plot.vb.setRange(**{("xRange", "yRange")[axis]: tuple(bounds)}, padding=0)

    def _follow(self, *_: object) -> None:
        across, down = self.plot.vb.viewRange()
        self.below.vb.setXRange(*across, padding=0)
        self.beside.vb.setYRange(*down, padding=0)

    def resizeEvent(self, event: Any) -> None:
        """More or less room."""
        super().resizeEvent(event)
        self.place()

    def place(self) -> None:
        """The map as large as there is room for it, a square where it is one, and the rest around it."""
        room = self.rect()
        columns, rows = self.plot.size_of
        across = max(LEAST, room.width() - self.around)
        across, down, bottom = self._size(across, room.height() - TITLE, square=self.square and columns == rows)
        self._axes(bottom)
        self.plot.setGeometry(QRectF(0, 0, self.left + across + 2, TITLE + down + bottom))
        left = self.left + across + 2
        for item in (self.below, self.beside):
            item.setVisible(self.profiles and self.plot.isVisible())
        if self.profiles:
            self.beside.setGeometry(QRectF(left, 0, BESIDE, TITLE + down + bottom))
            self.below.setGeometry(QRectF(0, TITLE + down + bottom + SPACE, self.left + across + 2, PROFILE))
            left += BESIDE
        self.bar.setVisible(self.with_bar and self.plot.isVisible())
        self.bar.setGeometry(QRectF(left, TITLE - 8, bar_width(), down + 16))
        self.right_end = left + (bar_width() if self.with_bar else 0.0)

    def _size(self, across: float, height: float, *, square: bool) -> tuple[float, float, float]:
        """(width, height) of the map and the height of its lower axis, whose names are written downwards where that
        fits the width that is left. Where each of the two ways would ask for the other one, there are numbers."""
        under = PROFILE + SPACE if self.profiles else 0.0
        width = across
        for turns in (True, True, True, False):
            self.plot.step_axis.turns = turns
            bottom = self.plot.needed_height(width)
            down = max(LEAST, height - bottom - under)
            width = min(across, down) if square else across
            if self.plot.needed_height(width) == bottom:
                break
        return width, width if square else down, bottom

    def _axes(self, bottom: float) -> None:
        self.plot.query_axis.setWidth(self.left)
        self.plot.query_axis.setStyle(showValues=self.with_names)
        self.plot.query_axis.showLabel(self.with_names)
        self.plot.step_axis.setHeight(bottom)
        self.below.getAxis("left").setWidth(self.left)
        self.below.getAxis("bottom").setHeight(0 if self.profiles else 20)
        self.below.getAxis("bottom").setStyle(showValues=False)
        self.plot.layout.setRowFixedHeight(0, TITLE - 2)
        self.below.layout.setRowFixedHeight(0, 0)
        self.beside.getAxis("left").setWidth(0)
        self.beside.getAxis("left").setStyle(showValues=False)
        self.beside.getAxis("bottom").setHeight(bottom)
        self.beside.layout.setRowFixedHeight(0, TITLE - 2)


def thinned(numbers: Array) -> tuple[Array, Array]:
    """(positions, numbers) of a line: all, or the least and largest of every few where there are more than POINTS.

    Gaps are no numbers here: every few with a known number have one.
    """
    if len(numbers) <= POINTS:
        return np.arange(len(numbers), dtype=np.float64), numbers
    every = -(-len(numbers) * 2 // POINTS)
    padded = np.concatenate((numbers, np.full(-len(numbers) % every, np.nan))).reshape(-1, every)
    low, high = np.fmin.reduce(padded, axis=1), np.fmax.reduce(padded, axis=1)
    at, ends = decimated(low, high, 0.0, float(every))
    return at, ends
