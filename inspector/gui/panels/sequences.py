"""Sequences: every sequence of a data set with its numbers, sorted by any of them, and how they are distributed."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QPushButton, QSplitter, QVBoxLayout, QWidget

from inspector.analysis.sequence_table import (
    LENGTH,
    SequenceTable,
    command_for,
    is_column,
    signal_of,
    table_of,
    unit_sentences,
)
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.channel_choice import distinct, offer
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.distribution import Distribution
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.number_table import NumberTable
from inspector.gui.widgets.tables.text_table import paint_lines
from inspector.gui.widgets.theme import Theme
from inspector.records import SEQUENCE_DOMAIN, Channel

Array = npt.NDArray[Any]
PAINTED_ROWS, PAINTED_COLUMNS = 30, 7
"""Rows and columns of the table in a figure."""
HEADING_LETTERS, MOST_PLACE = 10, 16
"""Letters of a line of a heading, and of the name of a layer in it."""
SAID_LINES = 3.5
TABLE_SHARE, PLOT_SHARE = 5, 2
LONGEST_CELL = 44
"""Letters of a cell of the painted table."""
OF_MEAN, OF_MEAN_LOSS = ("gradient_norm", "gradient_first"), "gradients are of the mean loss of a sequence"
"""Columns to which that belongs: Gradients has those of the sum."""
NONE = "none"
"""In place of a horizon that no lag reached."""


@PANELS.register("sequences")
class Sequences(Panel):
    """(sequence,) channels of kind "sequences", a column each; a sequence is opened by a double click."""

    tab_order, tab_row = 58, "upper"
    menu_group = "sequence"
    key, title = "sequences", "Sequences"
    hint = (
        "Every sequence of a data set with its loss, gradient norm and horizon, the worst ones marked. Choose Many "
        "sequences in the row above (a folder, a file of lines, the model's own data), or drop a folder here."
    )
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """A number of every sequence."""
        return is_column(channel)

    def picture(self) -> QWidget:
        """The table with what is said of units, and the distribution beside it."""
        self.table = NumberTable()
        self.table.setAccessibleName("Sequences and their numbers")
        self.table.chosen.connect(self._chosen)
        self.table.opened.connect(self._open)
        self.table.sorted_by.connect(self._sort)
        self.said = QPlainTextEdit()
        self.said.setReadOnly(True)
        self.said.setAccessibleName("What is said of all sequences, and of the units of every layer")
        self.said.setFixedHeight(round(SAID_LINES * self.said.fontMetrics().lineSpacing()) + 10)
        self.command = QLineEdit()
        self.command.setReadOnly(True)
        self.command.setAccessibleName("What to type in a terminal to run the chosen sequence alone")
        self.command.setToolTip("In a terminal, this runs the chosen sequence alone")
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.table, 1)
        column.addWidget(self.said)
        column.addWidget(self.command)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(left)
        splitter.addWidget(self.figure)
        for place, share in enumerate((TABLE_SHARE, PLOT_SHARE)):
            splitter.setStretchFactor(place, share)
            splitter.setCollapsible(place, False)
        splitter.setSizes([TABLE_SHARE * 1000, PLOT_SHARE * 1000])
        return splitter

    def build(self) -> None:
        """The distribution, and the controls."""
        self.distribution = Distribution(self.theme)
        self.figure.addItem(self.distribution.plot)
        self.which = self.add_choice("Sort by", "The number by which sequences are sorted")
        self.open = QPushButton("Open sequence")
        self.open.setToolTip("Run the chosen sequence alone, in a new capture (Enter, or a double click)")
        self.open.clicked.connect(lambda: self._open(self.number))
        self.controls.addWidget(self.open)
        self.reset()

    def reset(self) -> None:
        """Another capture: the worst first, by its first number."""
        self.descending = True
        self.shown: SequenceTable | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.distribution.set_theme(theme)
        self.table.set_theme(theme)
        super().set_theme(theme)

    # -- what is chosen

    @property
    def number(self) -> int | None:
        """The number of the chosen sequence."""
        return self.looking.position.at(SEQUENCE_DOMAIN)

    @property
    def column(self) -> str:
        """The channel by which sequences are sorted."""
        return self.which.currentData() or ""

    def _chosen(self, row: int) -> None:
        self.looking.move(steps={SEQUENCE_DOMAIN: row})

    def _open(self, row: int | None) -> None:
        if row is not None and self.shown is not None:
            self.opening.emit(row)

    def _sort(self, column: int) -> None:
        if self.shown is None or column < 0:
            return
        name = self.shown.channels[column].name
        self.descending = not self.descending if name == self.column else True
        if name == self.column:
            self.redraw()
        else:
            self.which.setCurrentIndex(self.which.findData(name))

    # -- drawing

    def update_contents(self) -> None:
        """Fill the table, and draw the distribution of the column by which it is sorted."""
        assert self.capture is not None
        table = self.shown = table_of(self.capture, self.frame)
        assert table is not None
        offer(self.which, distinct({channel.name: channel.title for channel in table.channels}))
        self._fill(table)
        self._draw(table)
        said = unit_sentences(self.capture, self.frame)
        text = "\n".join(map(clean, [self.summary(table), *said]))
        if text != self.said.toPlainText():
            self.said.setPlainText(text)

    def _fill(self, table: SequenceTable) -> None:
        names = [channel.name for channel in table.channels]
        self.table.show_rows(
            order=list(table.order(self.column, descending=self.descending)),
            names=table.names,
            notes=table.problems,
            headings=[self.heading(channel) for channel in table.channels],
            tips=[f"{channel.title}: {channel.formula} ({channel.method})" for channel in table.channels],
            cell=lambda row, column: self.cell(table, row, names[column]),
            marked={(row, column) for column, name in enumerate(names) for row in table.worst(name)},
        )
        order = Qt.SortOrder.DescendingOrder if self.descending else Qt.SortOrder.AscendingOrder
        self.table.horizontalHeader().setSortIndicator(names.index(self.column) + 1, order)

    def _draw(self, table: SequenceTable) -> None:
        channel = next(one for one in table.channels if one.name == self.column)
        values = table.columns[self.column]
        unit = "" if channel.unit in ("1", "") else f" [{channel.unit}]"
        self.distribution.show(
            values,
            values[table.worst(self.column)],
            f"{channel.title}{unit}",
            table.spread(self.column).partition(" (")[0],
        )

    @staticmethod
    def heading(channel: Channel) -> str:
        """A column's title; of a layer's number the layer below it."""
        title, _, place = channel.title.partition(" of ")
        lines = textwrap.wrap(clean(title), HEADING_LETTERS) + ([clean(place)[-MOST_PLACE:]] if place else [])
        return "\n".join(lines)

    @staticmethod
    def cell(table: SequenceTable, row: int, name: str) -> str:
        """A number as it is shown."""
        value = table.columns[name][row]
        if np.isnan(value):
            there = not np.isnan(table.columns.get(LENGTH, np.zeros(len(table)))[row])
            missing = NONE if signal_of(name) in ("horizon", "gradient_reach") and there else ""
            return "NaN" if table.is_nan(name)[row] else missing
        return f"{value:.4g}" if abs(value) < 1e4 or value != int(value) else f"{int(value):,}"

    @staticmethod
    def summary(table: SequenceTable) -> str:
        """How many sequences there are, and how they were run."""
        many, failed = len(table), len(table.failed)
        method = table.channels[0].method.partition("; ")[2]
        lost = f", {failed:,} could not be run" if failed else ""
        of_mean = any(signal_of(one.name) in OF_MEAN for one in table.channels)
        told = [f"{many:,} sequence{'' if many == 1 else 's'}{lost}", method, OF_MEAN_LOSS if of_mean else ""]
        return "; ".join(filter(None, told))

    # -- the cursor

    def follow(self, new: Position, old: Position) -> None:
        """The row of the chosen sequence, its place in the distribution, and what to type to open it."""
        table, row = self.shown, new.at(SEQUENCE_DOMAIN)
        there = table is not None and row is not None and row < len(table)
        self.open.setEnabled(there)
        self.table.choose(row if there else None)
        value = float(table.columns[self.column][row]) if table is not None and row is not None and there else None
        self.distribution.choose(value)
        said = command_for(self.capture.start, row) if there and row is not None and self.capture is not None else ""
        self.command.setText(clean(said))
        self.command.setCursorPosition(0)
        self.command.setVisible(bool(said))

    def clicked(self, plot: Any, x: float, y: float) -> None:
        """The sequence whose value is nearest to the click."""
        table = self.shown
        if table is None or plot is not self.distribution.plot:
            return
        away = np.abs(self.distribution.placed(table.columns[self.column]) - x)
        if np.isfinite(away).any():
            self._chosen(int(np.nanargmin(np.where(np.isfinite(away), away, np.nan))))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The numbers of the chosen sequence."""
        table, row = self.shown, position.at(SEQUENCE_DOMAIN)
        if table is None or row is None or row >= len(table):
            return []
        found = [(f"sequence {row}", table.problems[row] or table.names[row])]
        for channel in table.channels:
            value = float(table.columns[channel.name][row])
            if not np.isnan(value):
                found.append((channel.title, measured(value, channel.unit)))
        return found

    def data(self) -> dict[str, Array]:
        """Every number of every sequence."""
        return dict(self.shown.columns) if self.shown is not None else {}

    # -- figures

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The first rows of the table as text, the distribution beside them."""
        painter.fillRect(rect, QColor(self.theme.window))
        if self.state != "figure" or self.shown is None:
            return
        left = QRectF(rect.left(), rect.top(), 0.6 * rect.width(), rect.height())
        self._paint_table(painter, left, self.shown)
        right = QRectF(left.right(), rect.top(), rect.right() - left.right(), rect.height())
        super().paint(painter, right)

    def _paint_table(self, painter: QPainter, rect: QRectF, table: SequenceTable) -> None:
        channels = table.channels[:PAINTED_COLUMNS]
        rows = list(table.order(self.column, descending=self.descending)[:PAINTED_ROWS])
        lines = [["sequence", *(self.heading(channel).replace("\n", " ") for channel in channels)]]
        for row in rows:
            note = table.problems[row]
            name = f"{table.names[row]}: {note}" if note else table.names[row]
            lines.append([clean(name), *(self.cell(table, int(row), channel.name) for channel in channels)])
        worst = [set(table.worst(channel.name)) for channel in channels]

        def marked(row: int, column: int) -> bool:
            bad = bool(table.problems[rows[row]])
            return bad or (column > 0 and rows[row] in worst[column - 1])

        paint_lines(painter, rect, lines, self.theme, marked, LONGEST_CELL)
