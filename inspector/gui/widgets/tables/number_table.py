"""A table of many rows of which only the visible ones are made: a name and numbers in each, sorted by any column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QTableView

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import Theme

Index = QModelIndex | QPersistentModelIndex
NOWHERE = QModelIndex()
MOST_SPANS = 500
"""Rows whose note is shown across all columns; Qt searches through all of them when it paints."""
NAME_WIDTH, LEAST_WIDTH, NUMBER_MARGIN = 170, 40, 32
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class NumberModel(QAbstractTableModel):
    """`cell(row, column)` gives the text of a number; rows are in `order`: the numbers of what is listed."""

    def __init__(self) -> None:
        super().__init__()
        self.first = "sequence"
        """The title of the column of names."""
        self.order: Sequence[int] = ()
        self.names: Sequence[str] = ()
        self.whole: Sequence[str] = ()
        """The names as tooltips have them, where the rows have shorter ones."""
        self.notes: Sequence[str] = ()
        """What is wrong with a row, in the colour of errors; "" where nothing is."""
        self.headings: Sequence[str] = ()
        self.high: Sequence[str] = ()
        """The headings in more and shorter lines, where they are seen so; () where they are not."""
        self.tips: Sequence[str] = ()
        self.cell: Callable[[int, int], str] = lambda _row, _column: ""
        self.marked: set[tuple[int, int]] = set()
        """(number, column) of the cells in the colour of errors."""
        self.colour = QColor()

    def rowCount(self, parent: Index = NOWHERE) -> int:
        """One for each thing listed."""
        return 0 if parent.isValid() else len(self.order)

    def columnCount(self, parent: Index = NOWHERE) -> int:
        """The name, and the numbers."""
        return 0 if parent.isValid() else len(self.headings) + 1

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of columns; rows have none."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.first if section == 0 else (self.high or self.headings)[section - 1]
        if role == Qt.ItemDataRole.ToolTipRole and section:
            return tooltip(self.tips[section - 1])
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """What one cell shows."""
        number, column = self.order[index.row()], index.column() - 1
        note = self.notes[number]
        if role == Qt.ItemDataRole.DisplayRole:
            if column < 0:
                return clean(f"{self.names[number]}: {note}" if note else self.names[number])
            return "" if note else self.cell(number, column)
        if role == Qt.ItemDataRole.TextAlignmentRole and column >= 0:
            return RIGHT
        if role == Qt.ItemDataRole.ToolTipRole and column < 0:
            name = self.whole[number] if self.whole else self.names[number]
            return tooltip(f"{name}: {note}" if note else f"{number}: {name}")
        bad = bool(note) or (number, column) in self.marked
        if role == Qt.ItemDataRole.ForegroundRole and bad:
            return self.colour
        if role == Qt.ItemDataRole.FontRole and bad and column >= 0:
            font = QFont()
            font.setBold(True)
            return font
        return None


def room_of_arrow(table: QTableView) -> int:
    """Pixels of a heading's width beside its words: they stand in its middle, and the arrow of the order at its right
    end, so that both sides need room for it."""
    header = table.horizontalHeader()
    style = header.style()
    mark = style.pixelMetric(QStyle.PixelMetric.PM_HeaderMarkSize, None, header)
    margin = style.pixelMetric(QStyle.PixelMetric.PM_HeaderMargin, None, header)
    return 2 * (mark + 3 * margin)


class NumberTable(QTableView):
    """`chosen(number)` for the row of a click or a key, `opened(number)` for a double click or Enter, `sorted(column)`
    for a click on a heading (−1: the name)."""

    chosen = Signal(int)
    opened = Signal(int)
    sorted_by = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.numbers = NumberModel()
        self.setModel(self.numbers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        header = self.horizontalHeader()
        header.setSortIndicatorShown(True)
        header.setSectionsClickable(True)
        header.setHighlightSections(False)
        header.sectionClicked.connect(lambda section: self.sorted_by.emit(section - 1))
        self.doubleClicked.connect(lambda index: self.opened.emit(self.numbers.order[index.row()]))
        self.selectionModel().currentRowChanged.connect(self._moved)
        self._silent = False

    def _moved(self, index: QModelIndex, _before: QModelIndex) -> None:
        if index.isValid() and not self._silent:
            self.chosen.emit(int(self.numbers.order[index.row()]))

    def showEvent(self, event: QShowEvent) -> None:
        """The chosen row is in view: while the table was hidden it had no size to be scrolled in."""
        super().showEvent(event)
        if self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens the row."""
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and index.isValid():
            self.opened.emit(int(self.numbers.order[index.row()]))
        else:
            super().keyPressEvent(event)

    def show_rows(
        self,
        order: Sequence[int],
        names: Sequence[str],
        notes: Sequence[str],
        headings: Sequence[str],
        tips: Sequence[str],
        cell: Callable[[int, int], str],
        marked: set[tuple[int, int]],
    ) -> None:
        """Other contents; the row that was chosen stays chosen."""
        model, index = self.numbers, self.currentIndex()
        kept = model.order[index.row()] if index.isValid() and index.row() < len(model.order) else None
        at, wide = self.verticalScrollBar().value(), list(model.headings) != list(headings)
        model.beginResetModel()
        model.order, model.names, model.notes = [int(n) for n in order], names, notes
        model.high = () if wide else model.high
        model.headings, model.tips, model.cell, model.marked = headings, tips, cell, marked
        model.endResetModel()
        if wide:
            self._set_widths()
        self._span_notes()
        self.choose(kept, scroll=False)
        self.updateGeometries()  # the range of the bar, which the new contents may have changed
        self.verticalScrollBar().setValue(at)

    def _span_notes(self) -> None:
        """Rows with a note have no numbers: the note takes their place."""
        self.clearSpans()
        model = self.numbers
        rows = (row for row, number in enumerate(model.order) if model.notes[number])
        for row in islice(rows, MOST_SPANS):
            self.setSpan(row, 0, 1, model.columnCount())

    def _set_widths(self) -> None:
        header = self.horizontalHeader()
        self.setColumnWidth(0, NAME_WIDTH)
        header.setMinimumSectionSize(LEAST_WIDTH)
        metrics = self.fontMetrics()
        for column, heading in enumerate(self.numbers.headings, 1):
            words = max(metrics.horizontalAdvance(line) for line in heading.split("\n")) + room_of_arrow(self)
            self.setColumnWidth(column, max(words, metrics.horizontalAdvance("0.000e-00") + NUMBER_MARGIN))
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)

    def choose(self, number: int | None, *, scroll: bool = True) -> None:
        """Mark the row of a number, without `chosen`; none where it is not listed."""
        order = self.numbers.order
        if number is None or number not in order:
            self._silent = True
            self.setCurrentIndex(QModelIndex())
            self.clearSelection()
            self._silent = False
            return
        index = self.numbers.index(list(order).index(number), 0)
        if index.row() == self.currentIndex().row():
            return
        self._silent = True
        self.setCurrentIndex(index)
        self._silent = False
        if scroll:
            self.scrollTo(index)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.numbers.colour = QColor(theme.error)
        self.viewport().update()
