"""A table that sorts itself by a click on a heading, and can be painted as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QResizeEvent

from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.breaking import in_short_lines
from inspector.gui.widgets.tables.number_table import NumberTable, room_of_arrow
from inspector.gui.widgets.tables.text_table import paint_lines
from inspector.gui.widgets.theme import Theme

Cell = float | str
"""A number, or a word."""
NAMES = -1
"""The column of names."""
MOST_WHOLE = 1e12
"""Whole numbers from here on are written in four digits."""
MOST_WIDTH, MARGIN, LEAST_MARGIN = 360, 14, 10
"""Pixels: the widest column, the margin of a cell, and where there is little room."""
LEAST_OF_WORDS = 72
"""Pixels of a column of words at least; they are cut there, and whole in its tooltip or once it is made wider."""
PAINTED = 60
"""Rows of a table in a figure."""
FITTED = 400
"""Rows by which the widths of columns are chosen."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a table shows: a name and a cell for each heading in every row. `tips`: of the headings; `marked`: (row,
    column) of the cells in the colour of errors; `whole`: the names in full, where `names` are shorter."""

    names: Sequence[str] = ()
    headings: Sequence[str] = ()
    cells: Sequence[Sequence[Cell]] = ()
    tips: Sequence[str] = ()
    marked: frozenset[tuple[int, int]] = frozenset()
    whole: Sequence[str] = ()

    def order(self, column: int, *, descending: bool) -> list[int]:
        """The rows by a column: numbers before words, what is no number last; as they are given by names."""
        rows = list(range(len(self.names)))
        if not 0 <= column < len(self.headings):
            return rows[::-1] if descending else rows
        words = [row for row in rows if isinstance(self.cells[row][column], str)]
        numbers = {row: float(self.cells[row][column]) for row in rows if row not in words}
        known = [row for row, value in numbers.items() if not math.isnan(value)]
        known.sort(key=numbers.__getitem__, reverse=descending)
        words.sort(key=lambda row: str(self.cells[row][column]), reverse=descending)
        return [*known, *words, *(row for row, value in numbers.items() if math.isnan(value))]

    def text(self, row: int, column: int) -> str:
        """A cell as it is shown."""
        return written(self.cells[row][column])


def written(value: Cell) -> str:
    """A word as it is, whole numbers in full, others in four digits."""
    if isinstance(value, str):
        return clean(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if math.isnan(value):
        return "NaN"
    return f"{int(value):,}" if value == int(value) and abs(value) < MOST_WHOLE else short(value, 4)


class SortedTable(NumberTable):
    """Rows with the heading `first` over their names; a click on a heading sorts, a second one the other way round.

    `by`: the column by which the rows are ordered as they are given, largest first; NAMES: by their names.
    """

    def __init__(self, first: str, name: str, by: int = NAMES) -> None:
        super().__init__()
        self.by = by
        self.setAccessibleName(name)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names of heads and units differ at their ends
        self.numbers.first = first
        self.rows = Rows()
        self.column, self.descending = NAMES, False
        self._wanted: list[int] = []
        self._least: list[int] = []
        self._uncut: list[int] = []
        self._of_words: list[bool] = []
        self._high: list[int] = []
        self._given: list[int] = []
        """Of the columns: widths with all room, at least, and with all of their words but no room for an arrow; whether
        they are words; widths with headings in short lines; widths as they were set last."""
        self.sorted_by.connect(self._sort)

    def show_table(self, rows: Rows) -> None:
        """Other contents, in the order that was chosen; in their own where the columns are others."""
        others = list(rows.headings) != list(self.rows.headings)
        if others:
            self.column, self.descending = NAMES, False
        fits = not others and list(rows.names) == list(self.rows.names)
        self.rows = rows
        if not fits:
            self._wanted, self._given = [], []
        self._fill()
        if not fits:
            self._fit()

    def _fit(self) -> None:
        """Every column is as wide as its heading and its cells, within limits; narrower where there is no room."""
        metrics, rows = self.fontMetrics(), self.rows
        self._wanted, self._least, self._uncut, self._of_words, self._high = [], [], [], [], []
        for column in range(NAMES, len(rows.headings)):
            heading = self.numbers.first if column == NAMES else rows.headings[column]
            some = enumerate(rows.names[:FITTED])
            texts = [clean(n) if column == NAMES else rows.text(row, column) for row, n in some]
            inside = max((metrics.horizontalAdvance(text) for text in texts), default=0) + MARGIN
            above = max(metrics.horizontalAdvance(line) for line in heading.split("\n"))
            self._wanted.append(min(max(inside, above + room_of_arrow(self)), MOST_WIDTH))
            words = column == NAMES or any(isinstance(row[column], str) for row in rows.cells[:FITTED])
            self._of_words.append(words)
            self._uncut.append(min(self._wanted[-1], max(inside, above + MARGIN)))
            self._least.append(min(self._wanted[-1], LEAST_OF_WORDS) if words else self._uncut[-1])
            lines = in_short_lines(heading).split("\n")
            above = max(metrics.horizontalAdvance(line) for line in lines)
            high = self._least[-1] if words else max(inside - MARGIN, above) + LEAST_MARGIN
            self._high.append(min(self._least[-1], high))
        self._squeeze()

    def _squeeze(self) -> None:
        """Columns give up the room of an arrow that they do not have, those of numbers first, and words are cut where
        the table does not scroll sideways then. Columns that somebody has made wider or narrower stay so."""
        if not self._wanted or (self._given and self._given != self._widths()):
            return
        sure = self.width() - 2 * self.frameWidth() - self.verticalScrollBar().sizeHint().width()
        high = sum(self._least) > sure >= sum(self._high)  # as if the bar were there: high headings may bring it
        self._show_headings(high=high)
        room = self.viewport().width()
        widths, lack = list(self._wanted), sum(self._wanted) - room
        fits = high or sum(self._least) <= room
        for words in (False, True):
            for at, least in enumerate(self._high if high else self._least if fits else self._uncut):
                with_arrow = at == self.column + 1 and not (words and fits)
                if lack > 0 and self._of_words[at] is words and not with_arrow:
                    less = min(lack, widths[at] - least)
                    widths[at], lack = widths[at] - less, lack - less
        for at, width in enumerate(widths):
            self.setColumnWidth(at, width)
        self._given = self._widths()

    def _show_headings(self, *, high: bool) -> None:
        """Headings in more and shorter lines, so that no column is out of view, or as they are given."""
        model = self.numbers
        if high is bool(model.high) or not model.headings:
            return
        model.high = [in_short_lines(heading) for heading in model.headings] if high else ()
        model.headerDataChanged.emit(Qt.Orientation.Horizontal, 1, len(model.headings))
        self.updateGeometries()

    def _widths(self) -> list[int]:
        return [self.columnWidth(at) for at in range(len(self._wanted))]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """There is other room for the columns."""
        super().resizeEvent(event)
        self._squeeze()

    def sort_by(self, column: int, *, descending: bool) -> None:
        """Sort as a click on a heading does."""
        self.column, self.descending = column, descending
        self._fill()

    def _sort(self, column: int) -> None:
        self.descending = not self.descending if column == self.column else column != NAMES
        self.column = column
        self._fill()

    def _fill(self) -> None:
        rows = self.rows
        self.numbers.whole = rows.whole
        self.show_rows(
            order=rows.order(self.column, descending=self.descending), names=rows.names, notes=[""] * len(rows.names),
            headings=rows.headings, tips=rows.tips, cell=rows.text, marked=set(rows.marked),
        )  # fmt: skip
        given = self.column == NAMES and self.by != NAMES
        falls = self.descending is not given  # largest first, and the other way round after a click on the names
        order = Qt.SortOrder.DescendingOrder if falls else Qt.SortOrder.AscendingOrder
        self.horizontalHeader().setSortIndicator((self.by if given else self.column) + 1, order)
        self._squeeze()

    def paint_text(self, painter: QPainter, rect: QRectF, theme: Theme) -> None:
        """The first rows, as text that fits into a rectangle."""
        rows = self.rows
        lines = [[self.numbers.first.replace("\n", " "), *(heading.replace("\n", " ") for heading in rows.headings)]]
        for row in self.numbers.order[:PAINTED]:
            lines.append([clean(rows.names[row]), *(rows.text(row, j) for j in range(len(rows.headings)))])
        paint_lines(painter, rect, lines, theme)
