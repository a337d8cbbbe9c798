"""The checkpoints of a sweep in their order: the step of each, what told it, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from inspector.gui.state.sweeping import Row
from inspector.gui.widgets.plain_text import clean, tooltip

HEADINGS = ("checkpoint", "step", "told by", "")
STEP = 1


class SweepTable(QTableWidget):
    """In the order of training; only rows that changed are written again."""

    def __init__(self) -> None:
        super().__init__(0, len(HEADINGS))
        self.setHorizontalHeaderLabels(list(HEADINGS))
        self.setAccessibleName("Checkpoints in the order of training")
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(len(HEADINGS) - 1, QHeaderView.ResizeMode.Stretch)
        self._shown: list[Row] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show other rows, or what has changed in them."""
        if list(rows) == self._shown:
            return
        self.setRowCount(len(rows))
        for number, row in enumerate(rows):
            if number >= len(self._shown) or self._shown[number] != row:
                self._write(number, row)
        self._shown = list(rows)

    def _write(self, number: int, row: Row) -> None:
        step = "–" if row.step is None else f"{row.step:,}"
        for column, text in enumerate((row.name, step, row.told_by, row.state)):
            item = QTableWidgetItem(clean(text))
            item.setToolTip(tooltip(row.path if column == 0 else text))
            if column == STEP:
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.setItem(number, column, item)
