"""All channels of two runs in a table, what differs most first, and the distributions of the chosen one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QSplitter,
    QTableWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from inspector.analysis.compared_channels import ComparedChannel, part_by_part
from inspector.capture import CaptureError, Pair
from inspector.gui.state.first_difference import RunAt
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.widgets.tables.sorted_cell import KEY, SortedCell
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.window.comparing.first_difference import FirstDifference
from inspector.gui.window.parameter_table import ParameterTable
from inspector.records import counted

COLUMNS = ("Channel", "Relative norm", "Largest change", "First", "Second", "At")
RELATIVE = 1
ROW_HEIGHT = 22
TELL_SECONDS = 0.3
"""Between two lines about the progress: each is laid out anew."""
SECONDS = 0.02
"""Seconds for which channels are compared before the window goes on."""
NOTHING = "Nothing is compared: File ▸ Compare with… chooses another capture, View ▸ Compare frames another frame."
OF_AXES = "coordinate"


class ComparisonPane(QWidget):
    """`chosen(name)`: a channel of the table."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.pair: Pair | None = None
        self.theme: Theme = LIGHT
        self.found: list[ComparedChannel] = []
        self._waiting: list[str] = []
        self._told_at = 0.0
        self._chosen = ""
        """The channel that is chosen again once all were compared."""
        self._going: Iterator[ComparedChannel | None] | None = None
        """The comparison of the channel that waits first, while it is under way."""
        self.said = CutLabel()
        self.said.setContentsMargins(8, 2, 8, 2)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search channels by name")
        self.search.setAccessibleName("Search channels by name")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.table = QTableWidget(0, len(COLUMNS))
        self._set_up(self.table)
        self.parameters, self.first = ParameterTable(), FirstDifference()
        self.tabs = QTabWidget()
        self.page = self._channels()
        self.tabs.addTab(self.page, "Channels")
        self.tabs.addTab(self.parameters, "Parameters that changed most")
        self.tabs.addTab(self.first, "First difference")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.said)
        column.addWidget(self.tabs, 1)
        self.tabs.currentChanged.connect(lambda _: self._turned())
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)
        self._plot: Any = None
        self.show_pair(None)

    def _set_up(self, table: QTableWidget) -> None:
        table.setHorizontalHeaderLabels(list(COLUMNS))
        table.setAccessibleName("Channels of both runs")
        table.verticalHeader().hide()
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setWordWrap(False)
        table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        table.horizontalHeader().setStretchLastSection(True)
        table.currentCellChanged.connect(lambda *_: self._show_distributions())
        for n, width in enumerate((180, 105, 110, 75, 75)):
            table.setColumnWidth(n, width)

    def _channels(self) -> QWidget:
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(4, 4, 4, 4)
        column.addWidget(self.search)
        column.addWidget(self.table, 1)
        self.right = QWidget()
        self.below = QVBoxLayout(self.right)
        self.below.setContentsMargins(0, 0, 0, 0)
        self.distances = plain_label()
        self.distances.setWordWrap(True)
        self.distances.setContentsMargins(8, 2, 8, 2)
        self.below.addWidget(self.distances)
        page = QSplitter(Qt.Orientation.Horizontal)
        page.addWidget(left)
        page.addWidget(self.right)
        page.setSizes([620, 400])
        return page

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        if self._plot is not None:
            self._figure.setBackground(theme.window)
            self._plot.set_theme(theme)

    # -- what is compared

    def show_pair(self, pair: Pair | None) -> None:
        """Compare the channels of two runs, a few at a time, or none."""
        self.pair, self.found, self._going = pair, [], None
        self._timer.stop()
        self.table.setSortingEnabled(False)
        self.table.setRowCount(0)
        self.parameters.show_pair(pair)
        self._turned()
        self.distances.setText("")
        self._offer_tabs()
        if pair is None:
            self._waiting = []
            self.said.show_text(NOTHING)
            return
        self._chosen = ""
        self._begin(pair)

    def _offer_tabs(self) -> None:
        """Of logs, which have no frames, the first difference is all that there is."""
        for widget in (self.page, self.parameters):
            self.tabs.setTabVisible(self.tabs.indexOf(widget), self.pair is not None)
        self.tabs.setVisible(self.pair is not None or self.first.begun)

    def find_first(self, first: RunAt, second: RunAt) -> None:
        """Look for the first difference of two runs, and show it."""
        self.first.begin(first, second)
        self._offer_tabs()
        self.tabs.setCurrentWidget(self.first)

    def forget_first(self) -> None:
        """Other runs are shown."""
        self.first.forget()
        self._offer_tabs()

    def _begin(self, pair: Pair) -> None:
        self.found, self._going = [], None
        names = dict.fromkeys((*pair.after.view.channels, *pair.before.view.channels))
        self._described = {**pair.before.view.channels, **pair.after.view.channels}
        self._refused, self._apart = pair.refused, set(pair.separate)
        self._waiting = [name for name in names if self._described[name].kind != OF_AXES]
        self._total = len(self._waiting)
        self._timer.start()

    def show_again(self) -> None:
        """Compare the same two once more: there are more numbers. The chosen channel stays."""
        chosen = self.current or self._chosen
        if self.pair is not None and not self._waiting:
            self._chosen = chosen
            self._begin(self.pair)

    def _turned(self) -> None:
        """The parameters are on screen: their checkpoints are read."""
        if self.pair is not None and self.tabs.currentWidget() is self.parameters:
            self.parameters.ask()

    @Slot()
    def _go_on(self) -> None:
        end = time.monotonic() + SECONDS
        while self._waiting and time.monotonic() < end:
            found = self._compared_so_far(self._waiting[0])
            if found is not None:
                self._waiting.pop(0)
                self._going = None
                self.found.append(found)
        if self._waiting:
            if end > self._told_at + TELL_SECONDS:
                self._told_at = end
                self._tell()
            return
        self._timer.stop()
        self._tell()
        self._fill()

    def _fill(self) -> None:
        """All rows, once everything was compared: sorted as they were, what changed most first at the beginning."""
        table, header = self.table, self.table.horizontalHeader()
        column, order = RELATIVE, Qt.SortOrder.DescendingOrder
        if table.rowCount():
            column, order = header.sortIndicatorSection(), header.sortIndicatorOrder()
        table.blockSignals(True)
        table.setSortingEnabled(False)
        table.setRowCount(len(self.found))
        for row, one in enumerate(self.found):
            for number, cell in enumerate(_cells(one)):
                table.setItem(row, number, cell)
        table.setSortingEnabled(True)
        table.sortItems(column, order)
        names = [str(item.data(KEY)) for n in range(table.rowCount()) if (item := table.item(n, 0)) is not None]
        table.setCurrentCell(names.index(self._chosen) if self._chosen in names else 0, 0)
        table.blockSignals(False)
        self._filter(self.search.text())
        self._show_distributions()

    def _compared_so_far(self, name: str) -> ComparedChannel | None:
        """The comparison of a channel; None while parts of it are to be read."""
        assert self.pair is not None
        title = self._described[name].title
        if name in self._apart:
            return ComparedChannel(name, title, "separate", "read one run at a time")
        if name in self._refused:
            return ComparedChannel(name, title, "", self._refused[name])
        try:
            if self._going is None:
                self._going = part_by_part(self.pair, name)
            return next(self._going)
        except CaptureError as problem:  # another program has changed a file meanwhile
            return ComparedChannel(name, title, "", str(problem))

    def _tell(self) -> None:
        assert self.pair is not None
        compared = sum(one.largest is not None for one in self.found)
        changed = sum(one.unequal > 0 for one in self.found)
        coming = f"; {len(self._waiting)} are still being compared" if self._waiting else ""
        lines = [alignment.sentence for alignment in self.pair.alignments.values()]
        text = (
            f"{self.pair.after.name} against {self.pair.before.name}: {counted(compared, 'channel')} of {self._total}"
        )
        self.said.show_text("; ".join([f"{text} compared, {changed} of them differ{coming}", *lines]))

    @Slot(str)
    def _filter(self, text: str) -> None:
        words = text.lower().split()
        for row in range(self.table.rowCount()):
            item = self.table.item(row, 0)
            name = "" if item is None else item.text().lower()
            self.table.setRowHidden(row, not all(word in name for word in words))

    # -- distributions

    @property
    def current(self) -> str:
        """The channel that is chosen in the table; "" for none."""
        item = self.table.item(self.table.currentRow(), 0)
        return "" if item is None else str(item.data(KEY))

    def _show_distributions(self) -> None:
        from inspector.analysis.distributions import distributions

        if self.pair is None or not self.current or self._waiting:
            return
        name = self.current
        self.chosen.emit(name)
        plot = self._made_plot()
        try:
            found = distributions(self.pair.before, self.pair.after, name)
        except CaptureError as problem:
            self.distances.setText(clean(f"No distributions: {problem}"))
            self._figure.hide()
            return
        channel = self._described[name]
        unit = f" ({channel.unit})" if channel.unit not in ("", "1") else ""
        names = (self.pair.before.name, self.pair.after.name)
        plot.show(
            found.edges, (found.first, found.second), names, clean(f"{channel.title}{unit}"), log=found.logarithmic
        )
        self._figure.show()
        self.distances.setText(clean(f"{name}: {found.sentence}"))

    def _made_plot(self) -> Any:
        """The plot, made when it is first needed: the plotting library is not imported with the window."""
        if self._plot is None:
            from inspector.gui.panel.figure import Figure
            from inspector.gui.widgets.charts.two_distributions import TwoDistributions

            self._figure = Figure(lambda fault, _details: self.distances.setText(clean(fault)))
            self._figure.setAccessibleName("Distance of the two runs over the iterations")
            self._figure.setBackground(self.theme.window)
            self._plot = TwoDistributions(self.theme)
            self._figure.addItem(self._plot.plot)
            self.below.addWidget(self._figure)
        return self._plot


def _cells(one: ComparedChannel) -> list[SortedCell]:
    about = f"{one.title}\n{one.method}" if one.method else one.title
    name = SortedCell(one.name, tip=about)
    if one.largest is None:
        reason = one.reason or "no number is finite on both sides"
        return [
            name,
            SortedCell("", tip=reason),
            SortedCell("—", tip=reason),
            SortedCell(""),
            SortedCell(""),
            SortedCell(reason),
        ]
    unit = one.unit if one.how == "ratio" else f" {one.unit}" if one.unit not in ("", "1") else ""
    ratio = one.how == "ratio"
    size = abs(math.log(one.largest)) if ratio and one.largest > 0 else math.inf if ratio else abs(one.largest)
    sign = "" if ratio else "+"
    return [
        name, SortedCell(f"{one.relative:.3g}", one.relative), SortedCell(f"{one.largest:{sign}.4g}{unit}", size),
        SortedCell(f"{one.first:.4g}", one.first), SortedCell(f"{one.second:.4g}", one.second), SortedCell(one.place),
    ]  # fmt: skip
