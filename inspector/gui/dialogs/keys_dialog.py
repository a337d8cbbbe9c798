"""The keys, in a table that can be searched."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.plain_text import clean

WIDTH, MOST = 640, 0.85
"""Pixels; and the share of the screen's height that it takes at most."""
SCROLLED = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class KeysDialog(QDialog):
    """A row for each (key, what it does); what is typed leaves the rows that have all of its words."""

    def __init__(self, keys: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys")
        self.filter = LineField()
        self.filter.setPlaceholderText("Search: a key, or what it does")
        self.filter.setAccessibleName("Search the keys")
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._search)
        self.filter.installEventFilter(self)
        self.table = self._table(keys)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for part in (self.filter, self.table, buttons):
            layout.addWidget(part)
        self.resize(WIDTH, 0)

    def _table(self, keys: Sequence[tuple[str, str]]) -> QTableWidget:
        table = QTableWidget(len(keys), 2)
        table.setHorizontalHeaderLabels(["key", "what it does"])
        for row, words in enumerate(keys):
            for column, text in enumerate(words):
                table.setItem(row, column, QTableWidgetItem(clean(text)))
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setAlternatingRowColors(True)
        table.setWordWrap(True)
        table.setTextElideMode(Qt.TextElideMode.ElideNone)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        table.horizontalHeader().sectionResized.connect(table.resizeRowsToContents)
        table.setTabKeyNavigation(False)
        table.setAccessibleName("Keys")
        return table

    def showEvent(self, event: QShowEvent) -> None:
        """As high as all keys are, or as the screen has room for."""
        super().showEvent(event)
        self.table.resizeRowsToContents()
        rows = self.table.verticalHeader().length() + self.table.horizontalHeader().height() + 4
        screen = self.screen().availableGeometry().height()
        self.resize(self.width(), min(int(MOST * screen), self.height() - self.table.height() + rows))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up and down in the field scroll the table."""
        pressed = isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in SCROLLED
        if watched is self.filter and isinstance(event, QKeyEvent) and pressed:
            self.table.keyPressEvent(event)
        return watched is self.filter and pressed

    @Slot(str)
    def _search(self, text: str) -> None:
        words = text.casefold().split()
        for row in range(self.table.rowCount()):
            cells = [self.table.item(row, column) for column in (0, 1)]
            said = " ".join(cell.text() for cell in cells if cell is not None).casefold()
            self.table.setRowHidden(row, not all(word in said for word in words))
