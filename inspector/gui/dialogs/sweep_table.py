"""The checkpoints of a sweep in their order: the step of each, what told it, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from inspector.gui.state.sweeping import Row
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records.dates import at_local

HEADINGS = ("checkpoint", "step", "told by", "written", "size", "")
STEP, SIZE = 1, 4
UNITS = ("B", "kB", "MB", "GB", "TB")
MOST_FILES = 1_000
"""Files of a folder whose sizes are added up."""


class SweepTable(QTableWidget):
    """In the order of training; only rows that changed are written again. `opened(path)`: a double click, or Enter."""

    opened = Signal(str)

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
        self.doubleClicked.connect(lambda index: self.opened.emit(self.path_at(index.row())))

    def path_at(self, row: int) -> str:
        """The checkpoint of a row; "" for none."""
        return self._shown[row].path if 0 <= row < len(self._shown) else ""

    @property
    def chosen(self) -> str:
        """The checkpoint of the row that is selected; "" for none."""
        rows = self.selectionModel().selectedRows()
        return self.path_at(rows[0].row()) if rows else ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter opens the row."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.chosen:
            self.opened.emit(self.chosen)
        else:
            super().keyPressEvent(event)

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
        for column, text in enumerate((row.name, step, row.told_by, *written_and_size(row.path), row.state)):
            item = QTableWidgetItem(clean(text))
            item.setToolTip(tooltip(row.path if column == 0 else text))
            if column in (STEP, SIZE):
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.setItem(number, column, item)


def written_and_size(path: str) -> tuple[str, str]:
    """When a checkpoint was written last, and how large it is; of a folder all that lies in it. "" where that is not
    known."""
    try:
        found = Path(path).stat()
        files = islice((one for one in Path(path).rglob("*") if one.is_file()), MOST_FILES)
        parts = [one.stat() for one in files] if Path(path).is_dir() else [found]
    except OSError:
        return "", ""
    newest = max((part.st_mtime for part in parts), default=found.st_mtime)
    return at_local(newest), in_bytes(sum(part.st_size for part in parts))


def in_bytes(size: float) -> str:
    """A size in the largest unit of which there is at least one."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.3g} {UNITS[unit]}"
