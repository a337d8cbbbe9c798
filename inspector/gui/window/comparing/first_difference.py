"""The first difference of two runs, in the comparison: the verdict, what differs, and the way to where that is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.state.first_difference import DifferenceRow, FindingDifference, RunAt, rows_of
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean_block, tooltip
from inspector.gui.widgets.tables.sorted_cell import SortedCell

COLUMNS = ("What differs", "Name", "Relative", "By rounding", "Iteration", "A", "B")
TIPS = {
    "Relative": "The norm of the difference by the norm in A",
    "By rounding": "How large rounding and what differed before could make it",
}
WIDTHS = (130, 220, 70, 85, 65, 130, 130)
ROW_HEIGHT = 22
LOOK_MS = 100
LOOKING = "Looking for the first difference …"


class FirstDifference(QWidget):
    """`asked()`: look for it; `opened(iteration, place)`: show where a row is, NaN and "" where that is not known."""

    asked = Signal()
    opened = Signal(float, str)

    def __init__(self) -> None:
        super().__init__()
        self.button = QPushButton("Find the first difference")
        self.button.clicked.connect(self.asked)
        self.names, self.said = CutLabel(), QPlainTextEdit()
        self.said.setReadOnly(True)
        self.said.setFrameShape(QFrame.Shape.NoFrame)
        self.said.setAccessibleName("The verdict")
        self.table = QTableWidget(0, len(COLUMNS))
        self._set_up(self.table)
        self._arrange()
        self._finding: FindingDifference | None = None
        self._rows: list[DifferenceRow] = []
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.button)
        top.addWidget(self.names, 1)
        below = QSplitter(Qt.Orientation.Horizontal)
        below.addWidget(self.table)
        below.addWidget(self.said)
        below.setSizes([520, 300])
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 4, 4, 4)
        column.addLayout(top)
        column.addWidget(below, 1)
        self.table.hide()

    def _set_up(self, table: QTableWidget) -> None:
        table.setHorizontalHeaderLabels(list(COLUMNS))
        table.setAccessibleName("What differs first")
        table.verticalHeader().hide()
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # of a line, the file and the code are told
        table.setWordWrap(False)
        table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        table.horizontalHeader().setStretchLastSection(True)
        for n, (name, width) in enumerate(zip(COLUMNS, WIDTHS, strict=True)):
            table.setColumnWidth(n, width)
            heading = table.horizontalHeaderItem(n)
            if heading is not None:
                heading.setToolTip(tooltip(TIPS.get(name, "")))
        table.cellClicked.connect(lambda row, _column: self._open(row))
        table.cellActivated.connect(lambda row, _column: self._open(row))

    @property
    def begun(self) -> bool:
        """Whether it is being looked for, or was found."""
        return self._finding is not None or bool(self.said.toPlainText())

    def begin(self, first: RunAt, second: RunAt) -> None:
        """Look for the first difference of two runs, in the background."""
        self._finding = FindingDifference(first, second)
        self.names.show_text(f"A: {first.name}, B: {second.name}")
        self._say(LOOKING)
        self._show([])
        self.button.setEnabled(False)
        self._timer.start()

    def forget(self) -> None:
        """Other runs are compared, or none."""
        self._finding = None
        self._timer.stop()
        self.names.show_text("")
        self._say("")
        self._show([])
        self.button.setEnabled(True)

    @Slot()
    def _look(self) -> None:
        """What was found is shown; of runs that are no longer compared it is dropped."""
        finding = self._finding
        if finding is None or not finding.finished:
            return
        self._timer.stop()
        self._finding = None
        self.button.setEnabled(True)
        if finding.found is None:
            self._say(finding.problem)
            return
        self._say("\n".join(finding.found.lines()))
        self._show(rows_of(finding.found))

    def _say(self, text: str) -> None:
        self.said.setPlainText(clean_block(text))

    def _show(self, rows: list[DifferenceRow]) -> None:
        self._rows = rows
        self.table.setVisible(bool(rows))
        self.table.setRowCount(len(rows))
        for number, row in enumerate(rows):
            for column, cell in enumerate(_cells(row)):
                self.table.setItem(number, column, cell)
        for column, empty in enumerate(_empty(rows)):
            self.table.setColumnHidden(column, empty)

    def _open(self, row: int) -> None:
        one = self._rows[row]
        if one.iteration is not None or one.place:
            self.opened.emit(math.nan if one.iteration is None else one.iteration, one.place)


def _cells(row: DifferenceRow) -> list[SortedCell]:
    numbers = [SortedCell("" if math.isnan(one) else f"{one:.3g}", one) for one in (row.relative, row.explained)]
    at = SortedCell("" if row.iteration is None else f"{row.iteration:.15g}", row.iteration)
    return [SortedCell(row.what), SortedCell(row.name), *numbers, at, SortedCell(row.a), SortedCell(row.b)]


def _empty(rows: Sequence[DifferenceRow]) -> list[bool]:
    """Which columns say nothing in any row."""
    texts = [[cell.text() for cell in _cells(row)] for row in rows]
    return [not any(row[column] for row in texts) for column in range(len(COLUMNS))]
