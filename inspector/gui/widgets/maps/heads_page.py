"""The maps of the chosen heads side by side with one range and one cursor, or their lines, and the strip by query."""

from __future__ import annotations

import math
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt

from inspector.gui.widgets.charts.pair_plot import PairPlot
from inspector.gui.widgets.maps.colourbar import bar_width
from inspector.gui.widgets.maps.head_map import LEAST, PROFILE, TITLE, HeadMap
from inspector.gui.widgets.maps.linesview import LinesView
from inspector.gui.widgets.maps.map_plot import LOWER
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

MOST_MAPS = 6
"""Heads side by side."""
LOW = 400.0
"""Pixels of height below which there is no room for profiles."""
STRIP, STRIP_SHARE, SPACE = (76.0, 130.0), 0.24, 4.0
"""The least and the largest height of the strip, and its part of the whole."""
BESIDE_STRIP = (150.0, 400.0)
"""Pixels of width beside a square map from which on the strip is drawn there, and the map is as high as the page: of a
low page, whose map would be small, and of others."""


class HeadsPage(pg.GraphicsWidget):  # type: ignore[misc]
    """At least one map."""

    def __init__(self, theme: Theme, strip: StepPlot) -> None:
        super().__init__()
        self.theme, self.strip = theme, strip
        self.lines = LinesView(theme)
        self.maps: list[HeadMap] = []
        self.count = 1
        """How many maps are shown."""
        self.as_lines = False
        self.with_maps, self.with_strip, self.profiles = True, True, True
        self.pair = PairPlot(theme)
        self.as_pair = False
        """Whether the strip is that of a pair by dimension, and not of a statistic by query."""
        self._linking = False
        self.lines.setParentItem(self)
        for item in (strip, self.pair):
            item.setParentItem(self)
        self.need(1)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = self.lines.theme = theme
        for one in self.maps:
            one.set_theme(theme)
        self.pair.set_theme(theme)
        self.lines.update()

    def need(self, count: int) -> None:
        """Make so many maps, if there are fewer."""
        while len(self.maps) < count:
            made = HeadMap(self.theme)
            made.square = all(one.square for one in self.maps)
            made.setParentItem(self)
            made.plot.vb.sigRangeChanged.connect(lambda *_, made=made: self._link(made))
            self.maps.append(made)
        self.count = max(1, count)

    @property
    def shown(self) -> list[HeadMap]:
        """The maps that are shown."""
        return self.maps[: self.count]

    def _link(self, moved: HeadMap) -> None:
        """All maps show the range of the one that was zoomed or dragged."""
        if self._linking or moved.plot.whole or moved not in self.shown:
            return
        self._linking = True
        across, down = moved.plot.vb.viewRange()
        for one in self.shown:
            if one is not moved and one.plot.size_of == moved.plot.size_of:
                one.plot.vb.setRange(xRange=across, yRange=down, padding=0)
        self._linking = False

    def show_whole(self) -> None:
        """Nothing is zoomed."""
        self._linking = True
        for one in self.maps:
            one.plot.show_whole()
        self._linking = False
        self.lines.show_whole()

    # -- layout

    def resizeEvent(self, event: Any) -> None:
        """More or less room."""
        super().resizeEvent(event)
        self.place()

    def place(self) -> None:
        """Maps as large as there is room for them, the strip below, or beside a square map in a low page."""
        room = QRectF(self.rect())
        wide = self._square_and_wide(room)
        lower = self.pair if self.as_pair else self.strip
        strip = min(max(STRIP[0], STRIP_SHARE * room.height()), STRIP[1]) if self.with_strip else 0.0
        if strip:  # a title and names of an axis may need more, and would end below the page
            strip = max(strip, lower.effectiveSizeHint(Qt.SizeHint.MinimumSize).height())
        if not self.with_maps:
            strip = room.height()
        above = room.height() if wide else room.height() - strip - (SPACE if strip else 0.0)
        for item in (self.strip, self.pair):
            item.setVisible(self.with_strip and item is lower)
        self.lines.setVisible(self.with_maps and self.as_lines)
        self.lines.setGeometry(QRectF(0, 0, room.width(), max(1.0, above)))
        for i, one in enumerate(self.maps):
            one.setVisible(self.with_maps and not self.as_lines and i < self.count)
            for part in (one.plot, one.bar, one.below, one.beside):
                part.setVisible(one.isVisible())
        if self.with_maps and not self.as_lines:
            self._place_maps(QRectF(0, 0, room.width(), above), room)
        if wide:
            left = self.shown[0].right_end + 12
            lower.setGeometry(QRectF(left, TITLE, room.width() - left, room.height() - TITLE))
        elif self.with_strip:
            lower.setGeometry(QRectF(0, room.height() - strip, room.width(), strip))

    @property
    def no_profiles(self) -> str:
        """Why there is no place for profiles; "" where there is."""
        if self.as_lines:
            return "beside a map, not beside lines"
        if self.count > 1:
            return "beside one map, not beside several"
        height = self.boundingRect().height()
        return "" if height >= LOW else f"needs a map of {LOW:.0f} pixels, here are {height:.0f}"

    def _square_and_wide(self, room: QRectF) -> bool:
        """Whether one square map as high as the page leaves enough width beside it for the strip."""
        if not (self.with_maps and self.with_strip) or self.as_lines or self.count > 1:
            return False
        columns, rows = self.shown[0].plot.size_of
        side = room.height() - TITLE - LOWER - (PROFILE if self.profiles and room.height() >= LOW else 0.0)
        return (
            self.shown[0].square
            and columns == rows
            and room.width() - side - self.shown[0].axis_width - bar_width() > BESIDE_STRIP[room.height() >= LOW]
        )

    def _place_maps(self, area: QRectF, room: QRectF) -> None:
        """In as many columns as make them largest, all of one size; in a row names and colours that are the same stand
        once."""
        for one in self.shown:
            one.profiles = self.profiles and self.count == 1 and room.height() >= LOW
        columns = max(range(1, self.count + 1), key=lambda n: self._side(area, n))
        self._share_names(columns)
        height = area.height() / math.ceil(self.count / columns)
        rows = [self.shown[first : first + columns] for first in range(0, self.count, columns)]
        around = max(sum(one.around + SPACE for one in row) / len(row) for row in rows)
        across = max(LEAST, area.width() / columns - around)
        for number, row in enumerate(rows):
            left = 0.0
            for one in row:
                width = one.around + across
                one.setGeometry(QRectF(left, number * height, width, height - SPACE))
                one.place()
                left += width + SPACE

    def _share_names(self, columns: int) -> None:
        """Names of queries at the first map of a row, colours at the last, where those of all others are the same."""
        for at, one in enumerate(self.shown):
            before = self.shown[at - 1] if at % columns else None
            after = self.shown[at + 1] if (at + 1) % columns and at + 1 < self.count else None
            one.with_names = before is None or not one.continues(before)
            one.with_bar = after is None or not one.bar.says_as(after.bar)

    def _side(self, area: QRectF, columns: int) -> float:
        """The side of a square map in so many columns, about."""
        self._share_names(columns)
        rows = math.ceil(self.count / columns)
        around = max(
            sum(one.around + SPACE for one in self.shown[at : at + columns]) for at in range(0, self.count, columns)
        )
        return min((area.width() - around) / columns, area.height() / rows - TITLE - LOWER - SPACE)
